//! The folder of response samples, written during the run.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::iter;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};

use onrush_plan::secrets::KnownSecrets;

use super::{FileStates, describe_write_error, spawn_thread};
use crate::run::{KeepSample, Response, SampleOf};

/// The folder of response samples, which a thread of its own writes. Responses may contain secrets, so that only the
/// owner may read the folder.
pub struct SampleWriter {
    /// Samples for the thread; `None` marks the end.
    responses: Sender<Option<(Response, Arc<KnownSecrets>)>>,
    /// The folder, if it was created here and the samples have not ended: it is removed again if it stays empty.
    made: Option<PathBuf>,
}

impl Drop for SampleWriter {
    fn drop(&mut self) {
        // A folder that is not empty cannot be removed, and stays.
        self.made.take().map(fs::remove_dir);
    }
}

impl SampleWriter {
    /// Creates the folder, which is file `index`, or uses an existing empty one. Starts the thread that writes into it.
    ///
    /// # Errors
    ///
    /// Returns the reason why the folder cannot be written.
    pub fn open(index: usize, folder: &Path, states: &FileStates) -> Result<Self, String> {
        let why = |error: io::Error| describe_write_error(&error, folder);
        let mut made = None;
        match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
            Ok(true) => return Err("the folder is not empty; name another one, which need not exist".to_owned()),
            Ok(false) => drop(tempfile::tempfile_in(folder).map_err(why)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().mode(0o700).create(folder).map_err(why)?;
                made = Some(folder.to_owned());
            }
            Err(error) => return Err(why(error)),
        }
        let (sender, responses) = mpsc::channel::<Option<(Response, Arc<KnownSecrets>)>>();
        let (folder, states) = (folder.to_owned(), states.clone());
        spawn_thread("samples", move || {
            let mut failure = None;
            // If nothing is sent, the run never started.
            let Ok(first) = responses.recv() else { return };
            states.record_write_start(index);
            for (mut response, known) in iter::once(first).chain(responses).map_while(|response| response) {
                response.head = known.redact(&response.head);
                response.body = known.hide(&response.body);
                response.trailers = known.redact(&response.trailers);
                let path = folder.join(sample_file_name(&response));
                failure =
                    failure.or_else(|| write(&path, &response).err().map(|error| describe_write_error(&error, &path)));
            }
            let publish =
                || states.publish(index, &mut || Ok(())).err().map(|error| describe_write_error(&error, &folder));
            states.settle(index, failure.or_else(publish));
        })?;
        Ok(Self { responses: sender, made })
    }

    /// Returns the function to which workers pass samples. The secrets in `known` are redacted.
    pub fn sample_receiver(&self, known: KnownSecrets) -> KeepSample {
        let (responses, known) = (self.responses.clone(), Arc::new(known));
        // If the thread has ended, the state of the folder holds the reason.
        Arc::new(move |response| drop(responses.send(Some((response, known.clone())))))
    }

    /// Marks the end of the samples.
    pub fn end(mut self) {
        self.made = None;
        let _ = self.responses.send(None);
    }
}

/// Name of the file for a sample: `200-1.txt`, `check1-2.txt` for the first check, or `grpc14-1.txt`.
fn sample_file_name(Response { of, number, .. }: &Response) -> String {
    match of {
        SampleOf::Status(status) => format!("{status}-{number}.txt"),
        SampleOf::Check(check) => format!("check{}-{number}.txt", check + 1),
        SampleOf::Call(status) => format!("grpc{status}-{number}.txt"),
    }
}

fn write(path: &Path, Response { head, body, trailers, .. }: &Response) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(head)?;
    file.write_all(body)?;
    file.write_all(if trailers.is_empty() { b"" } else { b"\r\n" })?;
    file.write_all(trailers)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_plan::{Dialect, Output, OutputKind};

    use super::*;

    #[test]
    fn sampled_responses_never_overwrite_files() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("samples");
        let states = FileStates::new(&[Output { path: folder.clone(), kind: OutputKind::Samples }]);
        let samples = SampleWriter::open(0, &folder, &states).unwrap();
        let (head, body) = (b"HTTP/1.1 503 Busy\r\n\r\n".to_vec(), b"\x1b[2Jwait".to_vec());
        let trailers = b"Set-Cookie: id=6\r\n".to_vec();
        let kinds =
            [(SampleOf::Status(503), 1), (SampleOf::Status(503), 2), (SampleOf::Check(0), 1), (SampleOf::Call(14), 1)];
        let mut plan = crate::fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
        plan.output.keeps_secrets = true;
        for (of, number) in kinds {
            let (head, body, trailers) = (head.clone(), body.clone(), trailers.clone());
            samples.sample_receiver(KnownSecrets::from_plan(&plan))(Response { of, number, head, body, trailers });
        }
        plan.output.keeps_secrets = false;
        plan.request.headers = vec![("Authorization".to_owned(), "Bearer a-secret-1".to_owned())];
        let (of, number) = (SampleOf::Status(200), 1);
        let (told, echoed) = (b"HTTP/1.1 200 OK\r\nSet-Cookie: id=5\r\n\r\n".to_vec(), b"you sent a-secret-1".to_vec());
        samples.sample_receiver(KnownSecrets::from_plan(&plan))(Response {
            of,
            number,
            head: told,
            body: echoed,
            trailers: trailers.clone(),
        });
        samples.end();
        assert!(states.wait_until_final(Duration::from_secs(60)) && states.failures().is_empty());
        let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["200-1.txt", "503-1.txt", "503-2.txt", "check1-1.txt", "grpc14-1.txt"]);
        let hidden = fs::read_to_string(folder.join("200-1.txt")).unwrap();
        assert_eq!(
            hidden,
            "HTTP/1.1 200 OK\r\nSet-Cookie: REDACTED\r\n\r\nyou sent REDACTED\r\nSet-Cookie: REDACTED\r\n"
        );
        assert_eq!(fs::read(folder.join("503-2.txt")).unwrap(), [head, body, b"\r\n".to_vec(), trailers].concat());
        let never = scratch.path().join("never");
        drop(SampleWriter::open(0, &never, &states).unwrap());
        assert!(!never.exists());
        let refused = |folder: &Path| SampleWriter::open(0, folder, &states).err();
        assert!(refused(&folder).is_some_and(|reason| reason.starts_with("the folder is not empty")));
        assert!(refused(&folder.join("503-1.txt")).is_some() && refused(Path::new("/proc/none/such")).is_some());
    }
}
