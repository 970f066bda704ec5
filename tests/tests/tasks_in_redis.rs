//! Instances that share their tasks by way of Redis, and that are killed while these run.
//!
//! Needs `redis-server` (Debian: `apt-get install redis-server`).

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpListener as StdListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_client::{Client, Started, TaskReference};
use mcp_server::types::ElicitResult;
use mcp_transport_http::HttpTransport;
use redis::AsyncTypedCommands as _;
use redis::aio::MultiplexedConnection;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Nothing takes that long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// All tasks end within this time, though instances are killed.
const END: Duration = Duration::from_secs(180);

const TASKS: usize = 200;
const INSTANCES: usize = 3;

/// The tasks that are queued or claimed.
const QUEUE: &str = "mcp:tasks:queue";

/// The steps of a task.
const STEPS: [&str; 3] = ["outline", "colours", "picture"];

/// The time between two calls, so that some are in flight when an instance is killed.
const CALL_INTERVAL: Duration = Duration::from_millis(40);

/// The time between two kills.
const KILL_INTERVAL: Duration = Duration::from_secs(1);

/// The kill after which Redis is restarted, and how long it is away.
const REDIS_RESTART: usize = 5;
const REDIS_AWAY: Duration = Duration::from_millis(500);

/// A Redis that keeps its data over a restart.
struct Redis {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Redis {
    async fn start(port: u16, folder: &Path) -> Self {
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        // What was acknowledged is on disk.
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(folder);
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().expect("`redis-server` is there: apt-get install redis-server");
        let up = async {
            // It refuses commands until it has read its file.
            while !matches!(ping(port).await, Ok(true)) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, up).await.expect("Redis starts");
        Self { child, port, folder: folder.to_owned() }
    }

    /// Kills it, and starts it again after a while.
    async fn restart(&mut self) {
        self.child.kill().await.expect("it can be killed");
        sleep(REDIS_AWAY).await;
        *self = Self::start(self.port, &self.folder).await;
    }
}

fn redis_url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

async fn connect(port: u16) -> redis::RedisResult<MultiplexedConnection> {
    redis::Client::open(redis_url(port))?.get_multiplexed_async_connection().await
}

async fn ping(port: u16) -> redis::RedisResult<bool> {
    Ok(connect(port).await?.exists("steps").await.is_ok())
}

/// An instance of the server.
struct Instance {
    child: Child,
    address: String,
}

impl Instance {
    async fn start(redis: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_task-instance"));
        command.arg(redis).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let mut url = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        timeout(PATIENCE, output.read_line(&mut url)).await.expect("a line in time").expect("a line");
        let address = url.trim().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        assert!(!address.is_empty(), "the instance prints its URL");
        Self { child, address }
    }
}

/// A proxy that passes each connection to the next instance.
struct Proxy {
    instances: Mutex<Vec<String>>,
    next: AtomicUsize,
}

impl Proxy {
    async fn run(self: Arc<Self>, listener: TcpListener) {
        while let Ok((mut client, _)) = listener.accept().await {
            let proxy = Arc::clone(&self);
            tokio::spawn(async move {
                for _ in 0..INSTANCES {
                    if let Ok(mut server) = TcpStream::connect(proxy.choose()).await {
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                        return;
                    }
                }
            });
        }
    }

    fn choose(&self) -> String {
        let instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        instances[next % instances.len()].clone()
    }

    fn replace(&self, instance: usize, address: String) {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)[instance] = address;
    }
}

/// Numbers that look random, and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }
}

/// Redis, the instances, and the proxy in front of them.
struct Farm {
    redis: Redis,
    instances: Vec<Instance>,
    proxy: Arc<Proxy>,
}

impl Farm {
    async fn start(folder: &Path) -> (Self, String) {
        std::fs::create_dir_all(folder).expect("a folder");
        let free = StdListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let redis = Redis::start(free, folder).await;
        let mut instances = Vec::new();
        for _ in 0..INSTANCES {
            instances.push(Instance::start(&redis_url(redis.port)).await);
        }
        let addresses = instances.iter().map(|instance| instance.address.clone()).collect();
        let proxy = Arc::new(Proxy { instances: Mutex::new(addresses), next: AtomicUsize::new(0) });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        tokio::spawn(Arc::clone(&proxy).run(listener));
        (Self { redis, instances, proxy }, url)
    }

    /// Kills and replaces an instance every second, and restarts Redis once. Returns how many instances it killed.
    async fn harass(mut self, is_over: Arc<AtomicBool>) -> (Self, usize) {
        let (mut dice, mut killed) = (Dice(7), 0);
        while !is_over.load(Ordering::Relaxed) || killed <= REDIS_RESTART {
            sleep(KILL_INTERVAL).await;
            let victim = dice.roll(INSTANCES);
            self.instances[victim].child.kill().await.expect("it can be killed");
            killed += 1;
            if killed == REDIS_RESTART {
                self.redis.restart().await;
            }
            self.instances[victim] = Instance::start(&redis_url(self.redis.port)).await;
            self.proxy.replace(victim, self.instances[victim].address.clone());
        }
        (self, killed)
    }
}

/// A task that has ended.
struct Ended {
    job: String,
    asks: bool,
    text: String,
    reference: TaskReference,
    /// The jobs of calls before, whose responses were lost.
    lost: Vec<String>,
}

/// Calls the tool until a call returns a task, and follows that to its end.
async fn follow(client: Client, number: usize) -> Ended {
    let (asks, mut lost) = (number.is_multiple_of(2), Vec::new());
    loop {
        let job = format!("{number}-{}", lost.len());
        let call = client.call_tool("render").arguments(&json!({ "name": job, "asks": asks })).as_task();
        match timeout(PATIENCE, call).await.expect("a response in time") {
            Ok(Started::Task(mut task)) => {
                let result = task.result().await.unwrap_or_else(|error| panic!("{job}: {error}"));
                return Ended { job, asks, text: result.to_text(), reference: task.reference(), lost };
            }
            Ok(Started::Done(result)) => panic!("{job} is not a task: {}", result.to_text()),
            // A task may have been created: the client cannot know its id.
            Err(_) => lost.push(job),
        }
        assert!(lost.len() < 20, "{lost:?}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// The executions of each step of a job.
async fn executions(redis: &mut MultiplexedConnection, job: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for step in STEPS {
        let members = redis.smembers(format!("steps:{job}:{step}")).await.expect("a set");
        all.push(members.into_iter().collect());
    }
    all
}

/// How often steps ran.
#[derive(Default)]
struct Tally(BTreeMap<usize, usize>);

impl Tally {
    fn add(&mut self, executions: &[Vec<String>]) {
        for step in executions {
            *self.0.entry(step.len()).or_default() += 1;
        }
    }

    fn of(&self, executions: usize) -> usize {
        self.0.get(&executions).copied().unwrap_or_default()
    }
}

/// Prints the figures of a run, also if the test passes: its output is captured unless it is written like this.
fn report(figures: &str) {
    writeln!(std::io::stderr(), "tasks in Redis: {figures}").expect("standard error is open");
}

/// Tasks outlive the instances that run them: each ends once, with its result. A step runs once, or twice if its instance was
/// killed, or Redis was away, between the effect of the step and the storage of its result.
// covers: S3.36, MIS-1
#[tokio::test(flavor = "multi_thread")]
async fn tasks_outlive_their_instances() {
    let folder = std::env::temp_dir().join(format!("mcp-tasks-{}", std::process::id()));
    let (farm, url) = Farm::start(&folder).await;
    let questions = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let asked = Arc::clone(&questions);
    let client = Client::builder("follower", "1.0")
        .on_form_elicitation(move |_, form| {
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            *asked.entry(form.message.clone()).or_default() += 1;
            let colour = format!("red for {:?}", form.message);
            async move { ElicitResult::accepted([("colour", colour)]) }
        })
        .connect(HttpTransport::new(&url).expect("a URL"))
        .await
        .expect("a connection");

    let is_over = Arc::new(AtomicBool::new(false));
    let harassment = tokio::spawn(farm.harass(Arc::clone(&is_over)));
    let mut following = JoinSet::new();
    for number in 0..TASKS {
        following.spawn(follow(client.clone(), number));
        sleep(CALL_INTERVAL).await;
    }
    let ended = timeout(END, following.join_all()).await.expect("all tasks end");
    is_over.store(true, Ordering::Relaxed);
    let (farm, killed) = timeout(PATIENCE, harassment).await.expect("an end").expect("no panic");
    let mut redis = connect(farm.redis.port).await.expect("a connection");
    let idle = async {
        // Tasks whose ids were lost end, too, or wait for input.
        while redis::cmd("XLEN").arg(QUEUE).query_async::<usize>(&mut redis).await.expect("a stream") > 0 {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, idle).await.expect("the queue becomes empty");
    assert!(redis.exists(QUEUE).await.expect("a response"), "the queue has another name");

    let questions = questions.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (mut steps, mut steps_of_lost, mut lost) = (Tally::default(), Tally::default(), 0);
    for task in &ended {
        let executions = executions(&mut redis, &task.job).await;
        steps.add(&executions);
        let question = format!("Which colour for {}?", task.job);
        assert_eq!(questions.get(&question), task.asks.then_some(&1), "{question}");
        let colour = format!("red for {question:?}");
        let details = task.text.strip_prefix(&format!("{}: ", task.job)).expect("the result of the job");
        let mut used: Vec<&str> = details.split(", ").collect();
        if task.asks {
            assert_eq!(used.remove(2), colour);
        }
        assert_eq!(used.len(), STEPS.len(), "{details}");
        for (used, executions) in used.iter().zip(&executions) {
            assert!(executions.iter().any(|execution| execution == used), "{used} of {executions:?}");
        }
        let again = timeout(PATIENCE, client.resume_task(task.reference.clone()).result()).await.expect("in time");
        assert_eq!(again.expect("a result").to_text(), task.text, "a task ends once");
        for job in &task.lost {
            lost += 1;
            let executions = self::executions(&mut redis, job).await;
            let ran = executions.iter().filter(|executions| !executions.is_empty()).count();
            let all = STEPS.len() - usize::from(task.asks);
            assert!(ran == 0 || ran == all, "{job}: {executions:?}");
            steps_of_lost.add(&executions);
        }
    }
    report(&format!(
        "{TASKS} tasks ended, {killed} instances were killed, Redis was restarted once; {} steps ran once, {} twice; \
         {lost} calls were lost, whose tasks ran {} steps once, {} twice",
        steps.of(1),
        steps.of(2),
        steps_of_lost.of(1),
        steps_of_lost.of(2),
    ));
    assert_eq!(steps.of(1) + steps.of(2), TASKS * STEPS.len(), "{:?}", steps.0);
    assert!(steps_of_lost.0.keys().all(|executions| *executions <= 2), "{:?}", steps_of_lost.0);
    client.close().await;
    drop(farm);
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}
