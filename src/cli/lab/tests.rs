use super::file::read;
use super::*;
