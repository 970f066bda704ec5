//! Device codes (RFC 8628).

use std::time::Duration;

use serde::Deserialize;

use super::super::endpoint::{EndpointCall, MAX_TOKEN_BYTES, Seconds, read_lifetime};
use super::super::{DeviceCode, HttpResponse, LoginConfig, LoginError};
use super::addresses;
use crate::{Secret, UnixTime};

/// How often to ask whether the code was entered, unless the authorization server says otherwise.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);
/// What the interval grows by when the authorization server finds it too short.
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The longest interval that is respected.
const MAX_INTERVAL: Duration = Duration::from_secs(300);
/// The longest time that a code is waited for.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum length of a code that a user has to enter.
const MAX_USER_CODE_CHARACTERS: usize = 64;

#[derive(Deserialize)]
struct Body {
    device_code: Secret,
    user_code: String,
    // Some servers have the name of an early draft.
    #[serde(alias = "verification_url")]
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Option<Seconds>,
    interval: Option<Seconds>,
}

/// A device code, and what to show to a user.
#[derive(Debug)]
pub(super) struct IssuedCode {
    pub(super) device_code: Secret,
    pub(super) shown: DeviceCode,
    pub(super) interval: Duration,
}

/// Reads the response to a request for a device code.
pub(super) fn read_device_code(
    now: UnixTime,
    config: &LoginConfig,
    call: &EndpointCall,
    response: &HttpResponse,
) -> Result<IssuedCode, LoginError> {
    if !response.is_success() {
        return Err(call.refusal(response));
    }
    let invalid = LoginError::InvalidDeviceCode;
    let body: Body = serde_json::from_slice(&response.body)
        .map_err(|_| invalid("the response is not JSON with members of the right types"))?;
    if body.device_code.expose().is_empty() || body.device_code.expose().len() > MAX_TOKEN_BYTES {
        return Err(invalid("the code is empty or too long"));
    }
    // The code is shown in terminals, so that it must not be able to control them.
    let is_shown = |code: &str| {
        (1..=MAX_USER_CODE_CHARACTERS).contains(&code.len()) && code.bytes().all(|b| matches!(b, b' '..=b'~'))
    };
    if !is_shown(&body.user_code) {
        return Err(invalid("the code to enter is empty, too long or has characters that are not allowed"));
    }
    let verification_uri = addresses::check(config, "address to enter the code at", &body.verification_uri)?;
    let complete = body.verification_uri_complete.as_deref();
    let complete = complete.map(|url| addresses::check(config, "address to enter the code at", url)).transpose()?;
    let wrong_number = |_| invalid("a number of seconds is wrong");
    let lifetime = read_lifetime(body.expires_in).map_err(wrong_number)?;
    let lifetime = lifetime.ok_or_else(|| invalid("the lifetime is missing"))?.min(MAX_LIFETIME);
    let interval = read_lifetime(body.interval).map_err(wrong_number)?.unwrap_or(DEFAULT_INTERVAL);
    Ok(IssuedCode {
        device_code: body.device_code,
        shown: DeviceCode {
            user_code: body.user_code,
            verification_uri: verification_uri.to_string(),
            verification_uri_complete: complete.map(|address| address.to_string()),
            expires_at: now.after(lifetime),
        },
        interval: interval.clamp(Duration::from_secs(1), MAX_INTERVAL),
    })
}

/// The wait until a user has entered a code.
#[derive(Debug)]
pub(super) struct DevicePolling {
    pub(super) call: EndpointCall,
    interval: Duration,
    next_at: UnixTime,
    expires_at: UnixTime,
    /// Whether a request is in flight.
    pub(super) is_asking: bool,
}

/// What the wait comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeviceProgress {
    Wait(UnixTime),
    Ask,
    Expired,
}

impl DevicePolling {
    pub(super) fn new(now: UnixTime, call: EndpointCall, interval: Duration, expires_at: UnixTime) -> Self {
        Self { call, interval, next_at: now.after(interval), expires_at, is_asking: false }
    }

    pub(super) fn poll(&self, now: UnixTime) -> DeviceProgress {
        if now >= self.expires_at {
            DeviceProgress::Expired
        } else if now < self.next_at {
            DeviceProgress::Wait(self.next_at.min(self.expires_at))
        } else {
            DeviceProgress::Ask
        }
    }

    /// Takes an error of the token endpoint. Returns false if it ends the wait.
    pub(super) fn goes_on_after(&mut self, now: UnixTime, error: &LoginError) -> bool {
        if error.is_refusal("slow_down") {
            self.interval = (self.interval + SLOW_DOWN).min(MAX_INTERVAL);
        } else if error.is_transient() {
            // A server that is out of order is asked less often, too.
            self.interval = (self.interval * 2).min(MAX_INTERVAL);
        } else if !error.is_refusal("authorization_pending") {
            return false;
        }
        self.is_asking = false;
        self.next_at = now.after(self.interval);
        true
    }
}
