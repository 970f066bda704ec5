//! A tool that takes long: it reports progress, lets others work, and ends when it is cancelled.

use mcp_server::types::ToolAnnotations;
use mcp_server::{Json, Progress, RequestContext, Tool, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The largest number to look at
    #[schemars(range(max = MOST))]
    up_to: u32,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    /// How many primes there are
    primes: u32,
}

const MOST: u32 = 100_000_000;

/// How many numbers are looked at before somebody else may work: less than a millisecond's worth.
const AT_ONCE: u32 = 500;

/// Counts primes.
pub(crate) fn count() -> Tool {
    tool("count_primes", run)
        .title("Count primes")
        .description("Counts the primes up to a number, slowly: made to try progress and cancellation")
        .annotations(ToolAnnotations::default().read_only_hint(true).open_world_hint(false))
}

/// Handlers share a task with the connection they belong to, so whoever computes has to stop for breath. There a
/// cancelled handler is dropped, and needs no code for that.
async fn run(ctx: RequestContext, Arguments { up_to }: Arguments) -> Result<Json<Found>, String> {
    if up_to > MOST {
        return Err(format!("{up_to} is too large: at most {MOST}"));
    }
    let (mut primes, mut percent) = (0, 0);
    for number in 2..=up_to {
        primes += u32::from(is_prime(number));
        if number % AT_ONCE == 0 {
            let now = u64::from(number) * 100 / u64::from(up_to);
            // A client has no use for more than a hundred of these.
            if now > percent {
                percent = now;
                ctx.progress(Progress::new(number).total(up_to).message(format!("{primes} primes so far")));
            }
            tokio::task::yield_now().await;
        }
    }
    Ok(Json(Found { primes }))
}

fn is_prime(number: u32) -> bool {
    let mut divisors = (2..).take_while(|divisor: &u64| divisor * divisor <= u64::from(number));
    number > 1 && divisors.all(|divisor| !u64::from(number).is_multiple_of(divisor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_prime() {
        assert_eq!(
            (0..30).filter(|number| is_prime(*number)).collect::<Vec<_>>(),
            [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
        );
        assert!(is_prime(4_294_967_291) && !is_prime(4_294_967_295));
    }
}
