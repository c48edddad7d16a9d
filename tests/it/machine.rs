//! Measurements whose result depends on the machine as much as on the program: they need a quiet one, and are no tests.
//!
//! `make check-machine` runs them one after the other, before a release and whenever their subject changes. Each names
//! what covers it in `make test`.

use crate::harness::cases;

cases! {}
