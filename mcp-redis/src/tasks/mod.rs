//! The store of tasks.

mod keys;
mod response;
mod subscription;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks::{
    ClaimedTask, InsertedTask, NewTask, QueueAction, ReplaceOutcome, TaskChangeHub, TaskChanges, TaskClaim, TaskCursor,
    TaskId, TaskLimit, TaskLimits, TaskOwner, TaskPage, TaskPart, TaskStart, TaskStore, TaskStoreError, TaskTicket,
    TaskUsage, TaskWrite, VersionedTask, async_trait,
};
use redis::{Cmd, Value};
use tokio::task::AbortHandle;

use crate::script::{Script, Scripts};
use crate::{FOREVER, Shared, milliseconds};
use keys::TaskKeys;
use response::{array, boolean, encode_owner, full, nonsense, number, task, text};
use subscription::Subscription;

/// A [`TaskStore`] in Redis, so that any instance can run and report any task; created by
/// [`Redis::tasks`](crate::Redis::tasks).
///
/// Each method is one script, which Redis executes atomically. A method is retried once if the connection breaks: a write that
/// was executed already is recognised, and not executed again. [`claim`](TaskStore::claim), [`release`](TaskStore::release) and
/// [`remove`](TaskStore::remove) are not retried; a task whose claim was not received is taken over when its lease has expired.
///
/// The queue is a stream with a consumer group, and a lease is the idle time of a pending entry. Leases and the lives of tasks
/// are measured by the clock of Redis. All instances should use the same limits and the same lease.
///
/// # Durability
///
/// A task is as durable as Redis. With `appendonly yes` and `appendfsync always`, everything that was acknowledged survives a crash
/// of Redis. With the default, `appendfsync everysec`, a crash loses up to the last two seconds, and so does a failover to a replica
/// that lags behind: tasks go back to an earlier state, and their handlers repeat the steps since then. A run whose claim was lost
/// cannot write any more. The policy of eviction has to be `noeviction`: with others, Redis may remove tasks. Redis 6.2 or newer is
/// required.
///
/// # Confidentiality
///
/// Redis has the ids of tasks, and their calls, journals and results. Read access to the database gives access to the tasks of
/// anonymous callers.
#[derive(Clone)]
pub struct RedisTaskStore(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    limits: TaskLimits,
    keys: TaskKeys,
    hub: TaskChangeHub,
    subscription: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.subscription.abort();
    }
}

impl RedisTaskStore {
    pub(crate) fn new(shared: Arc<Shared>, limits: TaskLimits) -> Self {
        let (keys, hub) = (TaskKeys::new(&shared.keys.prefix), TaskChangeHub::default());
        let subscription = Subscription {
            endpoint: shared.endpoint.clone(),
            channel: keys.changes(),
            hub: hub.clone(),
            limit: shared.limit,
        };
        let subscription = tokio::spawn(subscription.run()).abort_handle();
        Self(Arc::new(Inner { shared, limits, keys, hub, subscription }))
    }

    /// Returns a call of a script without its own arguments.
    fn call(&self, scripts: &Scripts, script: Script) -> Cmd {
        let common = self.0.keys.common();
        let mut command = scripts.call(script, common.len());
        command.arg(&common[..]).arg(&self.0.keys.base);
        command
    }

    async fn execute(&self, script: Script, arguments: impl Fn(&mut Cmd)) -> Result<Value, crate::connection::Failure> {
        let command = |scripts: &Scripts| {
            let mut command = self.call(scripts, script);
            arguments(&mut command);
            command
        };
        self.0.shared.commands.execute(command).await
    }

    async fn execute_idempotent(
        &self,
        script: Script,
        arguments: impl Fn(&mut Cmd),
    ) -> Result<Value, crate::connection::Failure> {
        let command = |scripts: &Scripts| {
            let mut command = self.call(scripts, script);
            arguments(&mut command);
            command
        };
        self.0.shared.commands.execute_idempotent(command).await
    }

    fn check_size(&self, bytes: usize) -> Result<(), TaskStoreError> {
        let max = self.0.limits.max_record_bytes();
        if bytes > max { Err(TaskStoreError::TooLarge { part: TaskPart::Record, bytes, max }) } else { Ok(()) }
    }
}

/// Marks a write, so that Redis recognises it when it is sent again.
fn nonce() -> Result<String, TaskStoreError> {
    random::<16>().map(|bytes| crate::keys::hex(&bytes))
}

/// Marks a run. If Redis has lost a claim, the next one has the same number, and not the same token.
fn token() -> Result<u64, TaskStoreError> {
    random().map(u64::from_ne_bytes)
}

fn random<const N: usize>() -> Result<[u8; N], TaskStoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| TaskStoreError::Failed(format!("the random source failed: {error}")))?;
    Ok(bytes)
}

fn flag(value: bool) -> &'static str {
    if value { "1" } else { "0" }
}

#[async_trait]
impl TaskStore for RedisTaskStore {
    fn limits(&self) -> &TaskLimits {
        &self.0.limits
    }

    async fn insert(&self, now: u64, new: NewTask) -> Result<InsertedTask, TaskStoreError> {
        let NewTask { id, task, start } = new;
        self.check_size(task.content.len())?;
        let (nonce, token) = (nonce()?, token()?);
        let (owner, name) = (encode_owner(task.owner), id.to_string());
        let remaining = task.expires.saturating_sub(now).min(FOREVER);
        let worker = match &start {
            TaskStart::Queued => None,
            TaskStart::Claimed { worker, .. } => Some(&**worker),
        };
        let limits = [
            TaskLimit::UnfinishedPerOwner,
            TaskLimit::UnfinishedPerTool,
            TaskLimit::Unfinished,
            TaskLimit::KeptPerOwner,
            TaskLimit::Kept,
            TaskLimit::Bytes,
            TaskLimit::BytesPerOwner,
        ];
        let response = self.execute_idempotent(Script::InsertTask, |command| {
            command.arg(&name).arg(&owner).arg(&*task.tool).arg(flag(task.is_finished)).arg(&task.content[..]);
            command.arg(remaining).arg(task.expires).arg(&nonce);
            command.arg(worker.map_or_else(String::new, |_| token.to_string())).arg(worker.unwrap_or_default());
            for limit in limits {
                command.arg(self.0.limits.max(limit));
            }
        });
        let response = array(response.await)?;
        match text(response.first().unwrap_or(&Value::Nil))? {
            "inserted" => {
                let ticket = worker.filter(|_| !task.is_finished).map(|_| TaskTicket { id, run: 1, token });
                Ok(InsertedTask { version: 1, ticket })
            }
            "full" => Err(full(&self.0.limits, response.get(1))),
            "exists" => Err(TaskStoreError::Failed("there is a task with this id".to_owned())),
            _ => Err(nonsense("an unknown response")),
        }
    }

    async fn load(&self, _now: u64, id: TaskId) -> Result<Option<VersionedTask>, TaskStoreError> {
        let name = id.to_string();
        let response = self.execute_idempotent(Script::LoadTask, |command| {
            command.arg(&name);
        });
        Ok(task(array(response.await)?)?.map(|(_, task)| task))
    }

    async fn replace(&self, _now: u64, id: TaskId, write: TaskWrite) -> Result<ReplaceOutcome, TaskStoreError> {
        self.check_size(write.content.len())?;
        let (nonce, name, next) = (nonce()?, id.to_string(), write.read.saturating_add(1));
        let token = write.ticket.map_or_else(String::new, |ticket| ticket.token.to_string());
        let action = match write.queue {
            QueueAction::Keep => "keep",
            QueueAction::Enqueue => "enqueue",
            QueueAction::Done => "done",
        };
        let response = self.execute_idempotent(Script::ReplaceTask, |command| {
            command.arg(&name).arg(write.read).arg(next).arg(&write.content[..]).arg(flag(write.is_finished));
            command.arg(action).arg(&token).arg(&nonce);
            command.arg(self.0.limits.max_bytes).arg(self.0.limits.max_bytes_per_owner).arg(TaskLimits::FINAL_BYTES);
        });
        let mut response = array(response.await)?.into_iter();
        match text(&response.next().unwrap_or(Value::Nil))? {
            "replaced" => Ok(ReplaceOutcome::Replaced(next)),
            "gone" => Ok(ReplaceOutcome::Gone),
            "lost" => Ok(ReplaceOutcome::LeaseLost),
            "full" => Err(full(&self.0.limits, response.next().as_ref())),
            "conflict" => match task(array(Ok(response.next().unwrap_or(Value::Nil)))?)? {
                Some((_, found)) => Ok(ReplaceOutcome::Conflict(Box::new(found))),
                None => Ok(ReplaceOutcome::Gone),
            },
            _ => Err(nonsense("an unknown response")),
        }
    }

    async fn claim(&self, _now: u64, claim: TaskClaim<'_>) -> Result<Option<ClaimedTask>, TaskStoreError> {
        // A lease of no time at all would let workers take over what another one has just claimed.
        let (token, lease) = (token()?, milliseconds(claim.lease).max(1));
        let response = self.execute(Script::ClaimTask, |command| {
            command.arg(claim.worker).arg(token).arg(lease).arg(flag(claim.tools.is_some()));
            command.arg(claim.tools.unwrap_or_default());
        });
        let mut parts = array(response.await)?;
        let is_taken_over = parts.pop();
        let Some((id, task)) = task(parts)? else { return Ok(None) };
        let is_taken_over = boolean(Ok(is_taken_over.unwrap_or(Value::Nil)))?;
        Ok(Some(ClaimedTask { ticket: TaskTicket { id, run: task.run, token }, task, is_taken_over }))
    }

    /// The time of the lease is that of the next [`claim`](TaskStore::claim), which decides whether it has expired.
    async fn renew(&self, _now: u64, ticket: TaskTicket, _lease: Duration) -> Result<bool, TaskStoreError> {
        let id = ticket.id.to_string();
        let response = self.execute_idempotent(Script::RenewTask, |command| {
            command.arg(&id).arg(ticket.token);
        });
        boolean(response.await)
    }

    async fn release(&self, _now: u64, ticket: TaskTicket) -> Result<bool, TaskStoreError> {
        let id = ticket.id.to_string();
        let response = self.execute(Script::ReleaseTask, |command| {
            command.arg(&id).arg(ticket.token);
        });
        boolean(response.await)
    }

    async fn list(
        &self,
        _now: u64,
        owner: TaskOwner,
        after: Option<TaskCursor>,
        count: usize,
    ) -> Result<TaskPage, TaskStoreError> {
        let (owner, after) = (encode_owner(Some(owner)), after.map_or(0, |TaskCursor(number)| number));
        let response = self.execute_idempotent(Script::ListTasks, |command| {
            command.arg(&owner).arg(after).arg(count.min(MAX_PAGE)).arg(MAX_PAGE_BYTES);
        });
        let parts = <[Value; 2]>::try_from(array(response.await)?).map_err(|_| nonsense("a page that is none"))?;
        let [next, Value::Array(rows)] = parts else { return Err(nonsense("a page that is none")) };
        let mut tasks = Vec::with_capacity(rows.len());
        for row in rows {
            tasks.extend(task(array(Ok(row))?)?);
        }
        let next = if text(&next)?.is_empty() { None } else { Some(TaskCursor(number(&next)?)) };
        Ok(TaskPage { tasks, next })
    }

    async fn remove(&self, _now: u64, id: TaskId) -> Result<bool, TaskStoreError> {
        let id = id.to_string();
        let response = self.execute(Script::RemoveTask, |command| {
            command.arg(&id);
        });
        boolean(response.await)
    }

    async fn usage(&self, _now: u64) -> Result<TaskUsage, TaskStoreError> {
        let response = array(self.execute_idempotent(Script::CountTasks, |_| {}).await)?;
        let mut counts = response.into_iter().map(|value| {
            let Value::Int(count) = value else { return Err(nonsense("a count that is not a number")) };
            Ok(usize::try_from(count).unwrap_or_default())
        });
        let mut next = || counts.next().unwrap_or_else(|| Err(nonsense("too few counts")));
        Ok(TaskUsage { kept: next()?, unfinished: next()?, queued: next()?, claimed: next()?, bytes: next()? })
    }

    fn changes(&self) -> TaskChanges {
        self.0.hub.subscribe()
    }
}

impl fmt::Debug for RedisTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisTaskStore").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

/// The maximum number of tasks of a page, as Redis does nothing else while it reads them.
const MAX_PAGE: usize = 1000;

/// The size of the contents after which a page ends: they are read to list their states, and Redis does nothing else meanwhile.
const MAX_PAGE_BYTES: usize = 1024 * 1024;
