use super::arguments::Arguments;
use super::list::List;
use super::shown::{self, ShownService};
use crate::app::App;
use crate::args::Format;
use crate::child::{ChildCommand, Signals};
use crate::exit::{Ending, Failure, Outcome};
use crate::output::replace_file;
use docent::discovery::{Instances, Service};
use futures_util::{FutureExt, Stream, StreamExt};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use tokio::time::sleep;

/// Pause after the first failed write. The pause doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Follows the instances of a service.
struct Follower<'a> {
    app: &'a App,
    service: &'a Service<Value>,
    arguments: &'a Arguments,
    /// Whether the command ran since the start. Before that, the program may have replaced the file and been
    /// killed before the command.
    has_run_command: bool,
}

/// What was done with a list.
enum Handled {
    /// The list was printed, written or passed on, or the file had it already.
    Done,
    /// The file was not written.
    Failed,
}

/// Reports the instances now and after each change, until a signal comes.
pub(super) async fn run(
    app: &App,
    service: &Service<Value>,
    arguments: &Arguments,
    signals: &mut Signals,
) -> Outcome {
    let mut follower = Follower { app, service, arguments, has_run_command: false };
    let mut changes = service.changes();
    let path = arguments.path_of(service.name());
    let mut handled = None;
    let mut pause = None;
    loop {
        // Changes that arrived together are reported together.
        while changes.next().now_or_never().flatten().is_some() {}
        let instances = service.instances();
        let now = serde_json::to_string(&ShownService::new(&path, service.name(), &instances))
            .map_err(|error| Failure::other(format!("cannot serialize the instances: {error}")))?;
        if handled.as_ref() != Some(&now) {
            match follower.handle(&instances, signals).await? {
                ControlFlow::Break(ending) => return Ok(ending),
                ControlFlow::Continue(Handled::Done) => (handled, pause) = (Some(now), None),
                ControlFlow::Continue(Handled::Failed) => {
                    let longer = pause.map_or(FIRST_PAUSE, |pause: Duration| pause * 2);
                    (handled, pause) = (None, Some(longer.min(LONGEST_PAUSE)));
                }
            }
        }
        match signals.or(next(&mut changes, pause)).await? {
            Next::Ended => return Ok(Ending::Done),
            Next::Change(Err(error)) => {
                app.output.remark(format!("cannot list the instances; retrying: {error}"));
            }
            Next::Change(Ok(())) | Next::Retry => {}
        }
    }
}

/// Reason to compare the instances again.
enum Next {
    Change(Result<(), docent::Error>),
    Retry,
    Ended,
}

/// Waits for a change, or for the end of the pause if there is one.
async fn next<T>(
    changes: &mut (impl Stream<Item = Result<T, docent::Error>> + Unpin),
    pause: Option<Duration>,
) -> Next {
    let paused = async {
        match pause {
            Some(pause) => sleep(pause).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        change = changes.next() => change.map_or(Next::Ended, |change| Next::Change(change.map(drop))),
        () = paused => Next::Retry,
    }
}

impl Follower<'_> {
    async fn handle(
        &mut self,
        instances: &Instances<Value>,
        signals: &mut Signals,
    ) -> Result<ControlFlow<Ending, Handled>, Failure> {
        let Self { app, service, arguments, has_run_command } = &*self;
        let command = ChildCommand::new(&arguments.exec);
        if command.is_none() && arguments.write.is_none() {
            self.print(instances)?;
            return Ok(ControlFlow::Continue(Handled::Done));
        }
        let list = List::new(app, service.name(), instances, arguments)?;
        if let Some(path) = &arguments.write {
            let keeps = list.is_empty && arguments.keep_last;
            match self.write(path, &list, instances, keeps).await {
                Ok(true) => {}
                Ok(false) if !has_run_command && !keeps => {}
                Ok(false) => return Ok(ControlFlow::Continue(Handled::Done)),
                Err(reason) => {
                    app.output.remark(format!("cannot write {path:?}; retrying: {reason}"));
                    return Ok(ControlFlow::Continue(Handled::Failed));
                }
            }
        }
        let Some(command) = command else { return Ok(ControlFlow::Continue(Handled::Done)) };
        let path = arguments.path_of(service.name());
        let command = command.under(&path, None).with_input(list.text.into());
        let ended = app.run_hook(&command, signals).await?;
        self.has_run_command = true;
        Ok(match ended {
            ControlFlow::Break(ending) => ControlFlow::Break(ending),
            ControlFlow::Continue(()) => ControlFlow::Continue(Handled::Done),
        })
    }

    /// Writes the list to the file, and returns whether the file was replaced. This takes a thread, because
    /// a slow disk must not delay the session. A signal waits until the write ends, so that no temporary file
    /// is left.
    async fn write(
        &self,
        path: &Path,
        list: &List,
        instances: &Instances<Value>,
        keeps: bool,
    ) -> Result<bool, String> {
        shown::report_unreadable(self.app, instances);
        if keeps {
            self.app.output.remark(format!("no instance may be given work; keeping {path:?} if it exists"));
        }
        let (path, text) = (path.to_owned(), list.text.clone());
        let written = tokio::task::spawn_blocking(move || replace_file(&path, text.as_bytes(), keeps));
        let written = written.await.map_err(|error| error.to_string())?;
        written.map_err(|error| error.to_string())
    }

    /// Prints all instances. An empty line after `host:port` lines marks the end of the list.
    fn print(&self, instances: &Instances<Value>) -> Result<(), Failure> {
        let output = &self.app.output;
        if output.is_json() {
            let (path, name) = (self.arguments.path_of(self.service.name()), self.service.name());
            return Ok(output.json(&ShownService::new(&path, name, instances))?);
        }
        shown::print(self.app, self.service.name(), instances, self.arguments)?;
        if output.format() == Format::Hostport {
            output.line("")?;
        }
        Ok(())
    }
}
