//! The start, restart and end of a connection.

use mcp_types::{
    DiscoverResult, Era, InitializeRequestParams, InitializeResult, Method, NotificationParams, ProtocolVersion,
    RawObject, RequestParams, Revision, restrict_to, tasks,
};

use super::config::Mode;
use super::connection::{Connection, Stage};
use super::detect::{ConnectError, DetectedRevision, Step, choose, judge, legacy};
use super::event::{CallHeaders, Event, ServerFacts};
use super::outbox::Outbox;
use crate::Time;
use crate::calls::CallOptions;
use crate::errors::CallError;

impl Connection {
    /// Connects to the server: detects its revision, or uses the one that was detected before.
    ///
    /// With a modern revision the connection is ready at once; with a legacy one the probe is skipped. If the responses
    /// of the server do not fit the revision, the server is probed.
    // V-10, V-11, DU-41
    pub fn start(&mut self, now: Time, detected: Option<DetectedRevision>) {
        if self.stage != Stage::New {
            return;
        }
        // The settings may have changed since it was detected.
        let detected = detected.filter(|detected| self.config.supports(detected.revision));
        self.is_unconfirmed = detected.is_some();
        self.was_silent = false;
        let newest_modern = self.config.newest(Era::Modern);
        if let (Some(legacy), Some(modern)) = (detected, newest_modern)
            && legacy.probe_again
            && legacy.revision.era() == Era::Legacy
            && self.config.supports(modern)
        {
            // A child process can get both at the same time.
            self.probe(now, modern, false);
            if self.config.silence_means_legacy {
                self.handshake_before_probe(now);
            }
            return;
        }
        match (detected.map(|detected| detected.revision), self.config.mode, newest_modern) {
            (Some(revision), _, _) if revision.era() == Era::Modern => self.ready(revision, ServerFacts::default()),
            (Some(revision), _, _) => self.proceed(now, Step::Handshake(revision)),
            (None, Mode::Auto | Mode::Modern, Some(revision)) => self.probe(now, revision, false),
            (None, Mode::Auto | Mode::Modern | Mode::Legacy, _) => {
                let next = legacy(&self.config);
                self.proceed(now, next);
            }
        }
    }

    /// Resumes a session without a handshake.
    // S4.57
    pub fn resume(&mut self, revision: Revision, server: ServerFacts) {
        if self.stage == Stage::New {
            self.ready(revision, server);
        }
    }

    /// Starts again with a new server process. All calls end.
    pub fn restart(&mut self, now: Time, detected: Option<DetectedRevision>) {
        self.end_all();
        self.outbox = Outbox::default();
        self.has_abandoned = false;
        self.stage = Stage::New;
        self.start(now, detected);
    }

    /// Probes the server because its responses do not fit the revision that [`start`](Self::start) was given.
    ///
    /// Returns whether it does, which is the case once. Calls can be made when the connection is ready again.
    pub fn reconsider(&mut self, now: Time) -> bool {
        match self.stage {
            Stage::Ready(revision) if revision.era() == Era::Modern && self.is_unconfirmed => {
                self.is_unconfirmed = false;
                self.probe(now, revision, false);
                true
            }
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } | Stage::Ready(_) | Stage::Over => false,
        }
    }

    /// Changes to the newest common version, after the server refused that of a request.
    ///
    /// Returns whether there is one. The request can then be repeated once the connection is ready.
    // V-3, V-12
    pub fn switch_version(&mut self, now: Time, offered: &[ProtocolVersion]) -> bool {
        let is_modern = self.revision().is_ok_and(|revision| revision.era() == Era::Modern);
        match choose(&self.config, offered) {
            Step::Modern(revision) if is_modern => {
                self.stage = Stage::Ready(revision);
                self.envelope = None;
                true
            }
            next @ Step::Handshake(_) if is_modern => {
                self.proceed(now, next);
                true
            }
            Step::Modern(_) | Step::ProbeAgain(_) | Step::Handshake(_) | Step::Fail(_) => false,
        }
    }

    fn probe(&mut self, now: Time, revision: Revision, is_second: bool) {
        // K-13: progress does not extend this.
        let options = CallOptions::default().idle_timeout(None).total_timeout(Some(self.config.probe_timeout));
        let (params, headers) = (RequestParams::default(), CallHeaders::default());
        let call = self.send_request(now, &Method::SERVER_DISCOVER, params, revision, options, headers);
        self.stage = Stage::Probing { call, probed: revision, is_second };
    }

    /// Sends `initialize` before the probe has a response, if silence can mean that the server is legacy.
    ///
    /// Servers respond in order, so that a modern one which starts slowly responds to the probe first. Returns whether there
    /// is a legacy revision to try.
    pub(super) fn handshake_before_probe(&mut self, now: Time) -> bool {
        let Stage::Probing { call, probed, .. } = self.stage else { return false };
        let next = legacy(&self.config);
        if !self.config.silence_means_legacy || !matches!(next, Step::Handshake(_)) {
            return false;
        }
        // The server may still be modern. It is probed once more if the handshake fails.
        self.is_unconfirmed = !std::mem::replace(&mut self.was_silent, true);
        self.late_probe = Some((call, probed));
        self.proceed(now, next);
        true
    }

    /// Processes the response to the probe that arrives during the handshake.
    pub(super) fn handle_late_probe(
        &mut self,
        now: Time,
        probed: Revision,
        outcome: Result<DiscoverResult, CallError>,
    ) {
        let Stage::Handshaking { call: handshake } = self.stage else { return };
        match judge(&self.config, probed, false, outcome.as_ref()) {
            Step::Modern(_) | Step::ProbeAgain(_) => {
                let _ = self.calls.end(handshake, &mut self.deadlines);
                self.report_own_call(handshake, Some(CallError::Cancelled));
                self.handle_probe(now, probed, false, outcome);
            }
            // The server is legacy, as assumed.
            Step::Handshake(_) | Step::Fail(_) => self.is_unconfirmed = false,
        }
    }

    fn forget_late_probe(&mut self) {
        if let Some((call, _)) = self.late_probe.take() {
            let _ = self.calls.end(call, &mut self.deadlines);
            self.report_own_call(call, Some(CallError::TimedOut));
        }
    }

    /// Continues after the probe.
    pub(super) fn handle_probe(
        &mut self,
        now: Time,
        probed: Revision,
        is_second: bool,
        outcome: Result<DiscoverResult, CallError>,
    ) {
        // A silent server may be a modern one that starts slowly. It is probed once more if the handshake fails.
        let is_silent = matches!(outcome, Err(CallError::TimedOut));
        self.is_unconfirmed = is_silent && !std::mem::replace(&mut self.was_silent, is_silent);
        match judge(&self.config, probed, is_second, outcome.as_ref()) {
            Step::Modern(revision) => {
                self.ready(revision, outcome.map(ServerFacts::from).unwrap_or_default());
            }
            next @ (Step::ProbeAgain(_) | Step::Handshake(_) | Step::Fail(_)) => self.proceed(now, next),
        }
    }

    pub(super) fn proceed(&mut self, now: Time, next: Step) {
        match next {
            Step::Modern(revision) => self.ready(revision, ServerFacts::default()),
            Step::ProbeAgain(revision) => self.probe(now, revision, true),
            Step::Fail(why) => self.fail(why),
            Step::Handshake(revision) => {
                let (mut capabilities, info) = (self.config.capabilities.clone(), self.config.info.clone());
                // TK-36: the extension has no meaning there.
                if let Some(extensions) = &mut capabilities.extensions {
                    extensions.remove(tasks::EXTENSION);
                    capabilities.extensions.take_if(|extensions| extensions.is_empty());
                }
                let mut params = InitializeRequestParams::new(ProtocolVersion::from(revision), capabilities, info);
                // DU-44: only what the offered revision has.
                let _ = restrict_to(&mut params, revision);
                let params = RawObject::new(&params).ok().and_then(|params| params.decode().ok()).unwrap_or_default();
                let options =
                    CallOptions::default().idle_timeout(None).total_timeout(Some(self.config.handshake_timeout));
                let headers = CallHeaders::default();
                let call = self.send_request(now, &Method::INITIALIZE, params, revision, options, headers);
                self.stage = Stage::Handshaking { call };
            }
        }
    }

    /// Completes the handshake.
    // B-1, B-2, DU-43
    pub(super) fn handle_initialize_result(&mut self, now: Time, outcome: Result<InitializeResult, ConnectError>) {
        self.forget_late_probe();
        let result = match outcome {
            Ok(result) => result,
            // DU-41: a server that was legacy may have become modern, and a silent one may be modern.
            Err(why) if self.is_unconfirmed && why.is_evidence() && self.config.mode != Mode::Legacy => {
                self.is_unconfirmed = false;
                match self.config.newest(Era::Modern) {
                    Some(revision) => return self.probe(now, revision, false),
                    None => return self.fail(why),
                }
            }
            Err(why) => return self.fail(why),
        };
        self.is_unconfirmed = false;
        let revision = result.protocol_version.revision().filter(|revision| revision.era() == Era::Legacy);
        let Some(revision) = revision.filter(|revision| self.config.revisions.contains(revision)) else {
            return self.fail(ConnectError::NoCommonVersion { offered: vec![result.protocol_version] });
        };
        self.stage = Stage::Ready(revision);
        let _ = self.send_notification(&Method::NOTIFICATIONS_INITIALIZED, &NotificationParams::default());
        let facts = ServerFacts {
            capabilities: Some(result.capabilities),
            info: Some(result.server_info),
            instructions: result.instructions,
            is_public: false,
        };
        self.ready(revision, facts);
    }

    fn ready(&mut self, revision: Revision, facts: ServerFacts) {
        self.stage = Stage::Ready(revision);
        self.envelope = None;
        self.events.push_back(Event::Ready { revision, server: Box::new(facts) });
    }

    pub(super) fn fail(&mut self, why: ConnectError) {
        self.events.push_back(Event::Failed(why));
        self.over();
    }

    pub(super) fn over(&mut self) {
        self.end_all();
        self.stage = Stage::Over;
        self.events.push_back(Event::Closed);
    }

    /// Ends all calls, listen streams and requests.
    fn end_all(&mut self) {
        for call in self.calls.all() {
            let _ = self.calls.end(call, &mut self.deadlines);
            if self.is_internal(call) {
                self.report_own_call(call, Some(CallError::Disconnected));
            } else {
                self.events.push_back(Event::CallFinished { call, outcome: Err(CallError::Disconnected) });
            }
        }
        self.late_probe = None;
        self.listening.clear();
        self.forget_requests(None);
    }
}
