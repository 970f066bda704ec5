//! A long-running tool: it reports progress, yields to other requests, and can be cancelled.

use mcp::schemars::{self, JsonSchema};
use mcp::server::{Json, Progress, RequestContext, Tool, tool};
use mcp::types::ToolAnnotations;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    /// The largest number to test
    #[schemars(range(max = MAX_NUMBER))]
    up_to: u32,
}

#[derive(Serialize, JsonSchema)]
struct Found {
    /// How many primes there are
    primes: u32,
}

const MAX_NUMBER: u32 = 100_000_000;

/// How many numbers are tested between two yields. This takes less than a millisecond.
const BATCH: u32 = 500;

/// Counts primes.
pub(crate) fn count() -> Tool {
    tool("count_primes", run)
        .title("Count primes")
        .description("Counts the primes up to a number, slowly, to try progress and cancellation")
        .annotations(ToolAnnotations::default().read_only_hint(true).open_world_hint(false))
}

/// The handlers of a connection share its task, so a handler that computes has to yield. A cancelled handler is dropped
/// at its next `await`, and needs no code for that.
async fn run(ctx: RequestContext, Arguments { up_to }: Arguments) -> Result<Json<Found>, String> {
    if up_to > MAX_NUMBER {
        return Err(format!("{up_to} is too large: at most {MAX_NUMBER}"));
    }
    let (mut primes, mut percent) = (0, 0);
    for number in 2..=up_to {
        primes += u32::from(is_prime(number));
        if number % BATCH == 0 {
            let now = u64::from(number) * 100 / u64::from(up_to);
            // One notification for each percent is enough.
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
