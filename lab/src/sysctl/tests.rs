//! Tests of journals and restoration, with a directory of files as the kernel's settings.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::thread;

use tempfile::TempDir;

use super::leftover::restore_in;
use super::tree::Tree;
use super::*;

/// A tree of settings and a directory for journals.
struct TestMachine {
    scratch: TempDir,
}

impl TestMachine {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for (path, value) in [
            ("net/core/somaxconn", "4096\n"),
            ("net/core/rmem_max", "212992\n"),
            ("net/core/rmem_default", "212992\n"),
            ("net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            ("net/ipv4/ip_local_reserved_ports", "\n"),
            ("vm/swappiness", "60\n"),
        ] {
            let path = scratch.path().join("sys").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, value).unwrap();
        }
        Self { scratch }
    }

    fn tree(&self) -> Tree {
        Tree::at(self.scratch.path().join("sys"))
    }

    fn journals(&self) -> PathBuf {
        self.scratch.path().join("run")
    }

    fn loan(&self) -> Result<Loan, SysctlRefusal> {
        Loan::new(self.tree(), &self.journals())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join("sys").join(SettingName::parse(name).unwrap().path())
    }

    fn value(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.file(name), Permissions::from_mode(mode)).unwrap();
    }

    /// Path and content of the journal.
    fn journal(&self) -> Option<(PathBuf, String)> {
        let entry = fs::read_dir(self.journals()).unwrap().next()?.unwrap();
        Some((entry.path(), fs::read_to_string(entry.path()).unwrap()))
    }

    /// Simulates a process killed after these changes: nothing is restored, and the journal is unlocked.
    fn killed_after(&self, changes: &[(&str, &str)]) {
        let loan = self.loan().unwrap();
        for (name, value) in changes {
            loan.set(&name_of(name), value).unwrap();
        }
        let (path, text) = self.journal().unwrap();
        let changed: Vec<_> = changes.iter().map(|(name, _)| (self.file(name), self.value(name))).collect();
        drop(loan);
        changed.iter().for_each(|(path, value)| fs::write(path, value).unwrap());
        fs::write(path, text).unwrap();
    }

    fn restore(&self) -> Result<Leftover, SysctlRefusal> {
        restore_in(&self.tree(), &self.journals())
    }
}

fn name_of(text: &str) -> SettingName {
    SettingName::parse(text).unwrap()
}

fn restored(sentences: &[&str]) -> Leftover {
    Leftover::Changes(sentences.iter().map(|sentence| Restoration::Done((*sentence).to_owned())).collect())
}

const SOMAXCONN: &str = "net.core.somaxconn";
const RMEM: &str = "net.ipv4.tcp_rmem";

#[test]
fn loans_restore_all_settings() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    assert_eq!(loan.set(&name_of(SOMAXCONN), "128").unwrap(), "128");
    assert_eq!(loan.set(&name_of(RMEM), " 4096 16384\u{20}  32768").unwrap(), "4096 16384 32768");
    assert_eq!(loan.set(&name_of("net/core/somaxconn"), "256").unwrap(), "256");
    assert_eq!(machine.value(SOMAXCONN), "256\n");
    assert_eq!(loan.restore(), [] as [&str; 0]);
    assert_eq!(
        (machine.value(SOMAXCONN).as_str(), machine.value(RMEM).as_str()),
        ("4096\n", "4096\t131072\t6291456\n")
    );
    loan.set(&name_of("net.ipv4.ip_local_reserved_ports"), "80-90").unwrap();
    drop(loan);
    assert_eq!(machine.value("net.ipv4.ip_local_reserved_ports"), "\n", "a value may be empty");
    assert_eq!(machine.journal(), None);
}

#[test]
fn journals_keep_the_original_value() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    loan.set(&name_of(SOMAXCONN), "128").unwrap();
    loan.set(&name_of(SOMAXCONN), "256").unwrap();
    let (_, text) = machine.journal().unwrap();
    let mut lines = text.lines();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let head = lines.next().unwrap();
    for part in [format!("\"boot\":{:?}", boot.trim()), format!("\"pid\":{}", std::process::id())] {
        assert!(head.contains(&part), "{head}");
    }
    let expected = [
        r#"{"change":{"name":"net.core.somaxconn","old":"4096","intended":"128"}}"#,
        r#"{"became":{"name":"net.core.somaxconn","value":"128"}}"#,
        r#"{"change":{"name":"net.core.somaxconn","old":"4096","intended":"256"}}"#,
        r#"{"became":{"name":"net.core.somaxconn","value":"256"}}"#,
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

/// Uses files of this process as settings: the kernel also checks their values.
#[test]
fn refused_or_adjusted_settings_are_reported() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    for (name, path) in
        [("vm.swappiness", "/proc/self/oom_score_adj"), ("net.core.rmem_max", "/proc/self/timerslack_ns")]
    {
        fs::remove_file(machine.file(name)).unwrap();
        symlink(path, machine.file(name)).unwrap();
    }
    let slack = machine.value("net.core.rmem_max");
    assert_eq!(loan.set(&name_of("net.core.rmem_max"), "70000").unwrap(), "70000");
    let became = loan.set(&name_of("net.core.rmem_max"), "0").unwrap();
    assert!(became.parse::<u64>().unwrap() > 0, "zero is the default: {became}");
    loan.set(&name_of(SOMAXCONN), "128").unwrap();
    let refusal = loan.set(&name_of("vm.swappiness"), "5000").unwrap_err().to_string();
    assert_eq!(refusal, "the kernel refuses \"5000\" for vm.swappiness: Invalid argument");
    assert_eq!((machine.value(SOMAXCONN), machine.value("net.core.rmem_max")), ("4096\n".to_owned(), slack));
}

#[test]
fn without_a_journal_nothing_is_changed() {
    let machine = TestMachine::new();
    fs::write(machine.journals(), "in the place of the directory").unwrap();
    let refusal = machine.loan().unwrap_err().to_string();
    assert!(
        refusal.contains("run")
            && refusal
                .ends_with("onrush keeps its journal of changed settings there: make it writable, or start as root")
    );
}

#[test]
fn refused_settings_restore_all_others() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    loan.set(&name_of(SOMAXCONN), "128").unwrap();
    let refusal = loan.set(&name_of("net.core.rmem_mxa"), "1").unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the kernel has no setting net.core.rmem_mxa; nearest in net.core: rmem_max, rmem_default, somaxconn"
    );
    assert_eq!(machine.value(SOMAXCONN), "4096\n");
    assert_eq!(loan.set(&name_of(SOMAXCONN), "256").unwrap(), "256", "the loan lasts");
}

#[test]
fn unusable_settings_are_refused_with_reason() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    machine.set_mode("net.core.rmem_max", 0o444);
    machine.set_mode("net.core.rmem_default", 0o200);
    for (name, value, words) in [
        ("net.core", "1", "net.core is a group of settings; name one of them"),
        ("net.cor.somaxconn", "1", "the kernel has no setting net.cor.somaxconn; nearest in net: core, ipv4"),
        ("nett.core", "1", "the kernel has no setting nett.core; nearest: net, vm"),
        ("net.core.rmem_max", "1", "net.core.rmem_max is read-only here; some settings can be changed only in the"),
        ("net.core.rmem_default", "1", "net.core.rmem_default is write-only: its old value could not be restored"),
        (SOMAXCONN, "1\n2", "net.core.somaxconn: \"1\\n2\" is not a value; write one line of text"),
    ] {
        let refusal = loan.set(&name_of(name), value).unwrap_err().to_string();
        assert!(refusal.starts_with(words), "{refusal}");
    }
}

#[test]
fn foreign_values_are_never_overwritten() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    loan.set(&name_of(SOMAXCONN), "128").unwrap();
    loan.set(&name_of(RMEM), "1 2 3").unwrap();
    fs::write(machine.file(SOMAXCONN), "512\n").unwrap();
    let refusal = loan.set(&name_of(SOMAXCONN), "256").unwrap_err().to_string();
    assert_eq!(
        refusal,
        "net.core.somaxconn is \"512\", but onrush had set \"128\": another process is changing it, too"
    );
    let left =
        "net.core.somaxconn is \"512\" and was left alone: onrush had set \"128\", and the original value was \"4096\"";
    assert_eq!(loan.restore(), [left]);
    assert_eq!((machine.value(SOMAXCONN).as_str(), machine.value(RMEM).as_str()), ("512\n", "4096\t131072\t6291456\n"));
    assert_eq!(loan.restore(), [] as [&str; 0], "it is reported once");
}

#[test]
fn other_threads_restore_for_good_once() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    loan.set(&name_of(SOMAXCONN), "128").unwrap();
    let restorer = loan.restorer();
    assert_eq!(thread::spawn(move || restorer.restore()).join().unwrap(), [] as [&str; 0]);
    assert_eq!(machine.value(SOMAXCONN), "4096\n");
    assert_eq!(machine.journal(), None);
    assert_eq!(loan.set(&name_of(SOMAXCONN), "256"), Err(SysctlRefusal::Over));
    fs::write(machine.file(SOMAXCONN), "128\n").unwrap();
    drop(loan);
    assert_eq!(machine.value(SOMAXCONN), "128\n", "what is restored is not touched again");
}

#[test]
fn panics_restore_settings() {
    let machine = TestMachine::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let loan = machine.loan().unwrap();
        loan.set(&name_of(SOMAXCONN), "128").unwrap();
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    assert!(panicked.is_err());
    assert_eq!((machine.value(SOMAXCONN).as_str(), machine.journal()), ("4096\n", None));
}

#[test]
fn loans_are_exclusive() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    let held = SysctlRefusal::Held(Some(std::process::id()));
    assert!(held.to_string().starts_with("another onrush (pid "), "{held}");
    assert_eq!(machine.loan().unwrap_err(), held);
    assert_eq!(machine.restore(), Err(held), "the process with the loan is running");
    drop(loan);
    assert_eq!(machine.restore(), Ok(Leftover::Nothing));
    drop(machine.loan().unwrap());
}

#[test]
fn leftovers_are_restored_before_the_next_change() {
    let machine = TestMachine::new();
    machine.killed_after(&[(SOMAXCONN, "128"), (RMEM, "1 2 3"), (SOMAXCONN, "256")]);
    let refusal = machine.loan().unwrap_err();
    assert_eq!(refusal, SysctlRefusal::Leftover(std::process::id()));
    assert!(refusal.to_string().ends_with("run onrush restore first"));
    let expected = [
        "net.ipv4.tcp_rmem was restored from \"1 2 3\" to \"4096 131072 6291456\"",
        "net.core.somaxconn was restored from \"256\" to \"4096\"",
    ];
    assert_eq!(machine.restore(), Ok(restored(&expected)));
    assert_eq!(
        (machine.value(SOMAXCONN).as_str(), machine.value(RMEM).as_str()),
        ("4096\n", "4096\t131072\t6291456\n")
    );
    assert_eq!((machine.restore(), machine.journal()), (Ok(Leftover::Nothing), None));
}

/// A process can be killed at any moment: before a change, between a change and its line, or within a line.
#[test]
fn truncated_journals_restore_their_changes() {
    for (is_changed, kept) in [(false, 2), (true, 2), (true, 3), (false, 1)] {
        let machine = TestMachine::new();
        machine.killed_after(&[(SOMAXCONN, "128")]);
        let (path, text) = machine.journal().unwrap();
        let whole: String = text.split_inclusive('\n').take(kept).collect();
        fs::write(path, whole + r#"{"change":{"na"#).unwrap();
        fs::write(machine.file(SOMAXCONN), if is_changed { "128\n" } else { "4096\n" }).unwrap();
        let expected = match (is_changed, kept) {
            (_, 1) => Leftover::Nothing,
            (true, _) => restored(&["net.core.somaxconn was restored from \"128\" to \"4096\""]),
            (false, _) => restored(&["net.core.somaxconn is \"4096\", as before"]),
        };
        assert_eq!(machine.restore(), Ok(expected), "{is_changed} {kept}");
        assert_eq!(machine.value(SOMAXCONN), "4096\n");
    }
}

#[test]
fn failed_restorations_stay_in_the_journal() {
    let machine = TestMachine::new();
    machine.killed_after(&[(SOMAXCONN, "128"), (RMEM, "1 2 3")]);
    machine.set_mode(SOMAXCONN, 0o444);
    let Ok(Leftover::Changes(restorations)) = machine.restore() else { panic!("there are changes") };
    assert!(matches!(&restorations[..], [Restoration::Done(_), Restoration::Failed(words)] if words.starts_with(
        "net.core.somaxconn is still \"128\" and cannot be restored to \"4096\": net.core.somaxconn is read-only here"
    )));
    machine.set_mode(SOMAXCONN, 0o644);
    let expected = [
        "net.ipv4.tcp_rmem is \"4096 131072 6291456\", as before",
        "net.core.somaxconn was restored from \"128\" to \"4096\"",
    ];
    assert_eq!(machine.restore(), Ok(restored(&expected)));
    assert_eq!(machine.journal(), None);
}

#[test]
fn failed_restores_keep_their_journal() {
    let machine = TestMachine::new();
    let loan = machine.loan().unwrap();
    loan.set(&name_of(SOMAXCONN), "128").unwrap();
    machine.set_mode(SOMAXCONN, 0o444);
    let said = loan.restorer().restore();
    assert!(said.len() == 1 && said[0].starts_with("net.core.somaxconn is still \"128\""), "{said:?}");
    drop(loan);
    assert!(matches!(machine.loan(), Err(SysctlRefusal::Leftover(_))));
}

#[test]
fn restarts_undo_all_changes() {
    for is_restored in [true, false] {
        let machine = TestMachine::new();
        machine.killed_after(&[(SOMAXCONN, "128")]);
        let (path, text) = machine.journal().unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        fs::write(path, text.replace(boot.trim(), "an-earlier-one")).unwrap();
        if is_restored {
            assert_eq!(machine.restore(), Ok(Leftover::Restarted));
        } else {
            drop(machine.loan().unwrap());
        }
        assert_eq!((machine.value(SOMAXCONN).as_str(), machine.journal()), ("128\n", None));
    }
}

#[test]
fn foreign_journals_are_refused() {
    let machine = TestMachine::new();
    machine.killed_after(&[(SOMAXCONN, "128")]);
    let (path, text) = machine.journal().unwrap();
    for wrong in [
        "no journal\n".to_owned(),
        text.replace("net.core.somaxconn", "../../etc/passwd"),
        text.replace("\"namespace\":\"", "\"namespace\":\"other-"),
        text.clone() + &text,
    ] {
        fs::write(&path, wrong).unwrap();
        let refusal = machine.restore().unwrap_err();
        assert_eq!(refusal, SysctlRefusal::Damaged(path.display().to_string()));
    }
    assert_eq!(machine.value(SOMAXCONN), "128\n");
    fs::rename(&path, path.with_extension("elsewhere")).unwrap();
    symlink(path.with_extension("elsewhere"), &path).unwrap();
    assert!(matches!(machine.restore(), Err(SysctlRefusal::Journal { .. })), "a link leads anywhere");
}

#[test]
fn ineffective_settings_are_explained() {
    assert!(effect(&name_of(SOMAXCONN)).unwrap().contains("restart the target"));
    assert!(effect(&name_of("net/core/wmem_max")).unwrap().contains("only cap the buffers that a program asks for"));
    assert_eq!(effect(&name_of("vm.swappiness")), None);
}
