//! A slow tool on two instances, one of which is stopped in the middle.
//!
//! ```console
//! $ cargo run --bin render_farm
//! ```
//!
//! The client reaches the instances through a proxy that passes each connection to the next one. Both share a store of tasks:
//! here one in memory, because they are in one process; in production one in Redis. See docs/long-work.md.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp::client::Started;
use mcp::http::HttpServer;
use mcp::prelude::*;
use mcp::tasks::{TaskSettings, TaskStore};
use mcp::types::ElicitResult;
use mcp_examples::print;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

/// The time that a frame takes.
const FRAME_TIME: Duration = Duration::from_millis(300);

/// The number of frames before and after the question.
const FRAMES: u32 = 3;

#[derive(serde::Deserialize, JsonSchema)]
struct Scene {
    /// What to render.
    scene: String,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Lighting {
    /// The light of the second half.
    light: String,
}

fn main() -> ExitCode {
    mcp_examples::run(farm())
}

/// Renders some frames, asks for the light, and renders the others. Each frame is rendered once, by whichever instance.
async fn render(ctx: RequestContext, scene: Scene, camera: Camera) -> Result<String, HandlerError> {
    let mut film = Vec::new();
    for frame in 0..2 * FRAMES {
        let mut light = "daylight".to_owned();
        if frame >= FRAMES {
            // The handler runs again from its beginning when the response is there, and then this returns it.
            let elicited = ctx.elicit::<Lighting>("light", format!("Which light for {}?", scene.scene)).await?;
            light = elicited.accepted()?.light;
        }
        ctx.progress((frame, 2 * FRAMES));
        film.push(ctx.once(&format!("frame {frame}"), || camera.render(frame, &light)).await?);
    }
    Ok(format!("{}: {}", scene.scene, film.join(", ")))
}

/// What renders the frames of an instance.
#[derive(Clone)]
struct Camera {
    instance: &'static str,
    /// Is told which instance has rendered a frame.
    rendered: mpsc::UnboundedSender<&'static str>,
}

impl Camera {
    async fn render(&self, frame: u32, light: &str) -> Result<String, HandlerError> {
        sleep(FRAME_TIME).await;
        print(&format!("  instance {} renders frame {frame} in {light}\n", self.instance))?;
        // After the stop no frame is waited for.
        let _ = self.rendered.send(self.instance);
        Ok(format!("{frame} by {}", self.instance))
    }
}

/// An instance of the server.
struct Instance {
    name: &'static str,
    tasks: Tasks,
    address: String,
    stop: Arc<Notify>,
}

impl Instance {
    async fn start(camera: Camera, store: Arc<dyn TaskStore>) -> Result<Self, Box<dyn Error>> {
        let tasks = Tasks::shared(store, TaskSettings::default());
        let name = camera.instance;
        let render = move |ctx: RequestContext, scene: Scene| render(ctx, scene, camera.clone());
        let server = Server::builder("render-farm", "1.0")
            .tool(tool("render", render).description("Renders a film").task(TaskSupport::Required))
            .tasks(tasks.clone())
            .build()?;
        let listener = HttpServer::bind("127.0.0.1:0").await?;
        let address = listener.url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        tokio::spawn(async move {
            listener.drain_timeout(Duration::ZERO).serve(HttpService::new(server), stopped.notified()).await
        });
        Ok(Self { name, tasks, address, stop })
    }

    /// Hands the tasks that run here back to the store, and closes the socket. If the process were killed instead, the other
    /// instance would go on when the lease has expired, which is after 30 seconds by default.
    async fn stop(self) {
        self.tasks.shutdown(Duration::ZERO).await;
        self.stop.notify_one();
    }
}

/// Passes each connection to the next instance that accepts it.
async fn balance(listener: TcpListener, instances: Vec<String>) {
    let (instances, next) = (Arc::new(instances), Arc::new(AtomicUsize::new(0)));
    while let Ok((mut client, _)) = listener.accept().await {
        let (instances, next) = (Arc::clone(&instances), Arc::clone(&next));
        tokio::spawn(async move {
            for _ in 0..instances.len() {
                let instance = &instances[next.fetch_add(1, Ordering::Relaxed) % instances.len()];
                if let Ok(mut server) = TcpStream::connect(instance).await {
                    // A connection that breaks is an error for its client only.
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                    return;
                }
            }
        });
    }
}

async fn farm() -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn TaskStore> = Arc::new(MemoryTaskStore::default());
    let (rendered, mut frames) = mpsc::unbounded_channel();
    let mut instances = Vec::new();
    for instance in ["A", "B"] {
        let camera = Camera { instance, rendered: rendered.clone() };
        instances.push(Instance::start(camera, Arc::clone(&store)).await?);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    tokio::spawn(balance(listener, instances.iter().map(|instance| instance.address.clone()).collect()));

    let client = Client::builder("director", "1.0")
        .on_form_elicitation(async |_, form| {
            let _ = print(&format!("the user is asked: {} moonlight\n", form.message));
            ElicitResult::accepted([("light", "moonlight")])
        })
        .connect(HttpTransport::new(&url)?)
        .await?;
    print("the client calls `render`, which becomes a task\n")?;
    let call = client.call_tool("render").arguments(&json!({ "scene": "the harbour" }));
    let Started::Task(mut task) = call.as_task().await? else { return Err("the call is not a task".into()) };
    let stopping = tokio::spawn(async move {
        // Two frames are done, and their instance has begun the third.
        let (Some(_), Some(name)) = (frames.recv().await, frames.recv().await) else { return instances };
        sleep(FRAME_TIME / 2).await;
        let _ = print(&format!("instance {name} is stopped\n"));
        for instance in instances.extract_if(.., |instance| instance.name == name) {
            instance.stop().await;
        }
        instances
    });
    let result = task.result().await?;
    print(&format!("the task has ended:\n  {}\n", result.to_text()))?;
    client.close().await;
    for instance in stopping.await? {
        instance.stop().await;
    }
    Ok(())
}
