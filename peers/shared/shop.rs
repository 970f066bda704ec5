//! The work of the tools of both services: carts in Redis, prices from another service over HTTP.

use std::error::Error;

use redis::AsyncCommands as _;
use redis::aio::MultiplexedConnection;
use schemars::JsonSchema;
use serde::Deserialize;

/// What may go wrong.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// What most tools take.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Purchase {
    pub(crate) customer: String,
    pub(crate) item: String,
}

/// What the tool that reads takes.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Customer {
    pub(crate) customer: String,
}

/// Where carts and prices are.
#[derive(Clone)]
pub(crate) struct Shop {
    redis: MultiplexedConnection,
    http: reqwest::Client,
    prices: String,
}

impl Shop {
    /// Connects to what the driver has started: the arguments are the URLs of Redis and of the prices.
    pub(crate) async fn open() -> Result<Self, Fault> {
        let [redis, prices] = std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "REDIS PRICES")?;
        let redis = redis::Client::open(redis)?.get_multiplexed_async_connection().await?;
        Ok(Self { redis, http: reqwest::Client::new(), prices })
    }

    /// Adds one of an item to a cart.
    pub(crate) async fn add(&self, Purchase { customer, item }: &Purchase) -> Result<String, Fault> {
        let mut redis = self.redis.clone();
        let key = format!("cart:{customer}");
        let (count, _): (u64, bool) =
            redis::pipe().hincr(&key, item, 1).expire(&key, LIFETIME).query_async(&mut redis).await?;
        Ok(format!("{customer} has {count} of {item}"))
    }

    /// Lists what is in a cart.
    pub(crate) async fn cart(&self, Customer { customer }: &Customer) -> Result<String, Fault> {
        let mut redis = self.redis.clone();
        let items: Vec<(String, u64)> = redis.hgetall(format!("cart:{customer}")).await?;
        let items: Vec<String> = items.iter().map(|(item, count)| format!("{count} of {item}")).collect();
        Ok(format!("{customer} has {}", items.join(", ")))
    }

    /// Takes an item out of a cart, and tells what it costs.
    pub(crate) async fn buy(&self, Purchase { customer, item }: &Purchase) -> Result<String, Fault> {
        let mut redis = self.redis.clone();
        let key = format!("cart:{customer}");
        let count: Option<u64> = redis.hget(&key, item).await?;
        let price = self.http.get(format!("{}/{item}", self.prices)).send().await?.error_for_status()?.bytes().await?;
        let price: Price = serde_json::from_slice(&price)?;
        let (_, _): (u64, u64) =
            redis::pipe().hdel(&key, item).incr("revenue", price.cents).query_async(&mut redis).await?;
        Ok(format!("{customer} has bought {} of {item} for {} cents each", count.unwrap_or_default(), price.cents))
    }
}

/// What the other service responds.
#[derive(Deserialize)]
struct Price {
    cents: u64,
}

/// The seconds after which a cart is forgotten.
const LIFETIME: i64 = 3600;
