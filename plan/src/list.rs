//! A list of requests in a file, as `--urls` names it.

use serde::{Deserialize, Serialize};

use super::Material;
use super::limits::{BODY_MAX_MIB, LIST_MAX_MIB};
use super::material::Unreadable;

/// A list of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct List {
    /// Its text.
    pub file: Material,
    /// The files that it names as bodies, each once.
    pub bodies: Vec<Material>,
    /// In which order its requests are sent.
    pub order: Order,
    /// How many they are.
    pub length: u64,
    /// Whether all of them are `GET` or `HEAD`.
    pub is_safe: bool,
}

impl List {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// When one of them cannot be read.
    pub fn read_materials(&mut self) -> Result<(), Unreadable> {
        self.file.read("--urls", LIST_MAX_MIB)?;
        self.bodies.iter_mut().try_for_each(|body| body.read("the body", BODY_MAX_MIB))
    }
}

/// In which order the requests of a list are sent. Which one is the k-th of a run follows from k and the seed alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// One after the other, and again from the beginning.
    #[default]
    Seq,
    /// The same, but in an order drawn at random, a new one for each time through the list.
    Shuffle,
    /// Each drawn at random, in proportion to its weight.
    Weighted,
}

impl Order {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Seq, Self::Shuffle, Self::Weighted];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seq => "seq",
            Self::Shuffle => "shuffle",
            Self::Weighted => "weighted",
        }
    }
}
