//! The secret shared by the machines of one run, in a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::{hmac, rand};
use onrush_text::error_reason;
use rustix::fs::{OFlags, StatVfsMountFlags, fstatvfs};
use thiserror::Error;

/// Interval at which a worker checks whether the file exists.
const PAUSE: Duration = Duration::from_millis(50);

/// Time limit for the process that writes into a pipe.
const PATIENCE: Duration = Duration::from_secs(5);

/// The secret of a run: 256 bits, written as 64 hexadecimal digits.
#[derive(Clone)]
pub struct Token(hmac::Key);

/// The author of a proof. Because the author is part of the proof, one side cannot return the other side's proof as its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The coordinator's.
    Coordinator,
    /// A worker's.
    Worker,
}

/// The reason why a file contains no secret.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("--token-file {name:?}: {reason}")]
pub struct BadToken {
    name: String,
    reason: String,
}

impl Token {
    /// Reads the secret from a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, if others may read it, or if it contains no secret.
    pub fn read(path: &Path) -> Result<Self, BadToken> {
        let refused = |reason| BadToken { name: path.display().to_string(), reason };
        // Opening a pipe would otherwise wait for a writer.
        let open = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
        let mut file = open.map_err(|error| refused(error_reason(&error)))?;
        let metadata = file.metadata().map_err(|error| refused(error_reason(&error)))?;
        let mode = metadata.permissions().mode();
        if metadata.is_dir() {
            return Err(refused("this is a folder; name a file".to_owned()));
        }
        // A volume mounted by a container engine for this single process is as private as the process, whatever its
        // mode.
        let is_volume = fstatvfs(&file).is_ok_and(|volume| volume.f_flag.contains(StatVfsMountFlags::RDONLY));
        if mode & 0o077 != 0 && !is_volume {
            return Err(refused(format!("other users can read it; run chmod 600 '{}'", path.display())));
        }
        let text = read_beginning(&mut file).map_err(|error| refused(error_reason(&error)))?;
        Self::parse(text.trim()).ok_or_else(|| {
            refused(format!(
                "not a secret of 64 hexadecimal digits; make one for every run: openssl rand -hex 32 > '{}'",
                path.display()
            ))
        })
    }

    /// Reads the secret from a file that the coordinator may still have to create, and blocks for up to `patience`
    /// until it exists and is not empty. `None`: `is_asked` reported a signal first.
    ///
    /// # Errors
    ///
    /// As for [`Self::read`]. A missing or empty file is an error only after `patience`.
    pub fn wait_for_file(
        path: &Path,
        patience: Duration,
        is_asked: impl Fn() -> bool,
    ) -> Result<Option<Self>, BadToken> {
        let begun = Instant::now();
        // An empty file is still being written.
        let is_to_come = || match fs::metadata(path) {
            Ok(file) => file.is_file() && file.len() == 0,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        while is_to_come() && begun.elapsed() < patience {
            if is_asked() {
                return Ok(None);
            }
            thread::sleep(PAUSE);
        }
        Self::read(path).map(Some).map_err(|BadToken { name, reason }| {
            let waited = begun.elapsed().as_secs();
            let waited = if waited > 0 { format!("; waited for {waited} s (--join-timeout)") } else { String::new() };
            BadToken { name, reason: reason + &waited }
        })
    }

    /// Reads the secret from a file; creates the file with a new secret if it does not exist.
    ///
    /// # Errors
    ///
    /// As for [`Self::read`], or if the file cannot be created.
    pub fn read_or_make(path: &Path) -> Result<Self, BadToken> {
        let refused = |error: &io::Error| BadToken { name: path.display().to_string(), reason: error_reason(error) };
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => {
                let digits = Self::draw_secret().map_err(|error| refused(&error))?;
                if let Err(error) = writeln!(file, "{digits}") {
                    // Any process that finds an empty file waits for its contents.
                    let _ = fs::remove_file(path);
                    return Err(refused(&error));
                }
                Ok(Self::parse(&digits).expect("it was drawn as one"))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::read(path),
            Err(error) => Err(refused(&error)),
        }
    }

    /// Draws a new secret, in the form written to a file.
    ///
    /// # Errors
    ///
    /// If the kernel gives no random numbers.
    pub fn draw_secret() -> io::Result<String> {
        let mut secret = [0; 32];
        rand::fill(&mut secret).map_err(|_| io::Error::other("the kernel gives no random numbers"))?;
        Ok(secret.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn parse(digits: &str) -> Option<Self> {
        let is_secret = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let bytes = (0..32).map(|byte| u8::from_str_radix(digits.get(2 * byte..2 * byte + 2)?, 16).ok());
        let secret = bytes.collect::<Option<Vec<u8>>>().filter(|_| is_secret)?;
        Some(Self(hmac::Key::new(hmac::HMAC_SHA256, &secret)))
    }

    /// The proof that one side of a connection knows the secret. `exporter` is known only to the two ends of the TLS
    /// session, which makes the proof useless on another connection.
    pub fn proof(&self, role: Role, exporter: &[u8]) -> [u8; 32] {
        let tag = hmac::sign(&self.0, &message(role, exporter));
        tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// True if the proof is right. Takes constant time, whatever is wrong.
    pub fn verify_proof(&self, role: Role, exporter: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.0, &message(role, exporter), proof).is_ok()
    }
}

fn message(role: Role, exporter: &[u8]) -> Vec<u8> {
    let name = match role {
        Role::Coordinator => "onrush coordinator\0",
        Role::Worker => "onrush worker\0",
    };
    [name.as_bytes(), exporter].concat()
}

/// Reads the start of a file, enough for two digits per byte and any line ending. A pipe has a short time to deliver
/// it.
fn read_beginning(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    let begun = Instant::now();
    while let Err(error) = file.take(70 - bytes.len() as u64).read_to_end(&mut bytes) {
        if error.kind() != io::ErrorKind::WouldBlock || begun.elapsed() >= PATIENCE {
            return Err(error);
        }
        thread::sleep(PAUSE);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    #[test]
    fn proofs_bind_role_connection_and_secret() {
        let [one, other] = ["a", "b"].map(|digit| Token::parse(&digit.repeat(64)).unwrap());
        let proof = one.proof(Role::Worker, b"exporter");
        assert!(one.verify_proof(Role::Worker, b"exporter", &proof));
        assert!(!one.verify_proof(Role::Coordinator, b"exporter", &proof));
        assert!(!one.verify_proof(Role::Worker, b"exporteR", &proof));
        assert!(!other.verify_proof(Role::Worker, b"exporter", &proof));
        assert!(!one.verify_proof(Role::Worker, b"exporter", &proof[..31]));
    }

    #[test]
    fn token_files_are_created_private() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("token");
        let made = Token::read_or_make(&path).unwrap();
        let read = Token::read(&path).unwrap();
        assert!(read.verify_proof(Role::Worker, b"x", &made.proof(Role::Worker, b"x")));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        let said = Token::read(&path).err().unwrap().to_string();
        assert_eq!(said, format!("--token-file {path:?}: other users can read it; run chmod 600 '{}'", path.display()));
        let private = OpenOptions::new().write(true).create_new(true).mode(0o600).to_owned();
        for (name, text) in [("short", "ab"), ("long", &"a".repeat(65)), ("words", &"é".repeat(32)), ("empty", "")] {
            let path = scratch.path().join(name);
            private.open(&path).unwrap().write_all(text.as_bytes()).unwrap();
            assert!(Token::read(&path).err().unwrap().to_string().contains("64 hexadecimal digits"), "{name}");
        }
        assert!(Token::read(scratch.path()).is_err());
    }

    #[test]
    fn token_pipes_are_read_without_blocking() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        // Nobody writes to the pipe.
        assert!(Token::read(&path).err().unwrap().to_string().contains("64 hexadecimal digits"));
        let mut both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let reads = {
            let path = path.clone();
            thread::spawn(move || Token::read(&path).is_ok())
        };
        thread::sleep(PAUSE * 2);
        both.write_all("a".repeat(70).as_bytes()).unwrap();
        assert!(!reads.join().unwrap(), "it is too long");
        writeln!(both, "{}\r\n    ", "a".repeat(64)).unwrap();
        assert!(Token::read(&path).is_ok());
    }

    #[test]
    fn missing_token_files_are_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("token");
        let long = Duration::from_secs(60);
        let missing = Token::wait_for_file(&path, Duration::ZERO, || false).err().unwrap().to_string();
        assert!(missing.ends_with("No such file or directory"), "{missing}");
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        assert!(Token::wait_for_file(&path, long, || true).unwrap().is_none());
        let late = path.clone();
        let writes = thread::spawn(move || fs::write(late, "a".repeat(64)).unwrap());
        assert!(Token::wait_for_file(&path, long, || false).unwrap().is_some());
        writes.join().unwrap();
        let below = path.join("token");
        assert!(Token::wait_for_file(&below, long, || false).is_err(), "a file cannot be made in a file");
    }
}
