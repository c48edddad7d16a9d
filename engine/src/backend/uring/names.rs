//! Operation names, in the 64 bits that the kernel returns with a completion: the connection, its generation, and the
//! kind.

use super::ConnId;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Waits for the outcome of a connect.
    Connect,
    /// Sends and reports the end.
    Send,
    /// Sends without waiting and reports only a refusal.
    SendSilently,
    /// Receives once, into a buffer.
    Receive,
    /// Stays armed: receives whatever arrives into buffers.
    Armed,
    /// [`Self::Receive`] with the kernel's timestamps.
    Timestamped,
    /// Receives and discards.
    Discard,
    /// Cancels a receive.
    Cancel,
}

impl Operation {
    /// True if the end of the operation must be noticed without delay: its moment is not timestamped, or such an
    /// operation follows. An urgent operation ends exactly once.
    pub fn is_urgent(self) -> bool {
        match self {
            Self::Connect | Self::Send | Self::Receive | Self::Discard | Self::Cancel => true,
            Self::SendSilently | Self::Armed | Self::Timestamped => false,
        }
    }
}

/// The bits left over by connection and kind count generations. After that many connections of one slot, no operation
/// of the first can still be in flight.
const GENERATION_BITS: u32 = 28;

/// The name of an operation, with which its completion comes back.
pub fn encode_operation_name(conn: ConnId, generation: u32, operation: Operation) -> u64 {
    let generation = u64::from(generation & ((1 << GENERATION_BITS) - 1));
    u64::from(conn.0) | generation << 32 | (operation as u64) << (32 + GENERATION_BITS)
}

/// The connection and the kind encoded in an operation name.
pub fn decode_operation_name(name: u64) -> (ConnId, Operation) {
    let operation = match name >> (32 + GENERATION_BITS) {
        0 => Operation::Connect,
        1 => Operation::Send,
        2 => Operation::SendSilently,
        3 => Operation::Receive,
        4 => Operation::Armed,
        5 => Operation::Timestamped,
        6 => Operation::Discard,
        _ => Operation::Cancel,
    };
    (ConnId(name as u32), operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_names_round_trip_for_every_generation() {
        use Operation::{Armed, Cancel, Connect, Discard, Receive, Send, SendSilently, Timestamped};
        for operation in [Connect, Send, SendSilently, Receive, Armed, Timestamped, Discard, Cancel] {
            for conn in [ConnId(0), ConnId(7), ConnId(u32::MAX)] {
                assert_eq!(decode_operation_name(encode_operation_name(conn, u32::MAX, operation)), (conn, operation));
                assert_ne!(encode_operation_name(conn, 1, operation), encode_operation_name(conn, 2, operation));
            }
        }
    }
}
