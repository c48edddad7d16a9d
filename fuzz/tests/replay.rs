//! Replays every seed of every corpus.

use std::fs;
use std::path::{Path, PathBuf};

use onrush_fuzz::TARGETS;

#[test]
fn targets_hold_for_seeds_and_their_prefixes() {
    for (name, target) in TARGETS {
        let seeds = entries(&corpora().join(name));
        assert!(!seeds.is_empty(), "the corpus of {name} is empty");
        for seed in seeds {
            println!("replaying {}", seed.display());
            let bytes = fs::read(&seed).expect("a seed can be read");
            for end in 0..=bytes.len() {
                target(&bytes[..end]);
            }
        }
    }
}

#[test]
fn every_corpus_belongs_to_a_target() {
    let known: Vec<PathBuf> = TARGETS.iter().map(|(name, _)| corpora().join(name)).collect();
    for corpus in entries(&corpora()) {
        assert!(known.contains(&corpus), "there is no target for {}", corpus.display());
    }
}

#[test]
fn every_target_has_a_program_for_the_fuzzer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("there is a manifest");
    for (name, _) in TARGETS {
        let program = fs::read_to_string(root.join(format!("src/bin/{name}.rs"))).unwrap_or_default();
        assert!(program.contains(&format!("onrush_fuzz::{name}(")), "src/bin/{name}.rs does not call {name}");
        assert!(manifest.contains(&format!("name = \"{name}\"\nrequired-features = [\"libfuzzer\"]")), "{name}");
    }
}

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The entries of a directory, sorted by name; empty if the directory does not exist.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}
