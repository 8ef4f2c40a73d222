package agent

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// frameLimit is the most bytes that one frame holds.
const frameLimit = 64 << 20

// op says what a frame is.
type op string

const (
	opCall   op = "call"   // krig: start Kind with Body as arguments
	opData   op = "data"   // both: one message
	opCredit op = "credit" // both: Credit more bytes have been read
	opCancel op = "cancel" // krig: end early
	opAlive  op = "alive"  // krig: still there
	opEnd    op = "end"    // agent: the verb has returned, with Error
)

// frame is one unit on the wire.
type frame struct {
	Call   uint64          `json:"call"`
	Op     op              `json:"op"`
	Kind   string          `json:"kind,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`
	Credit int             `json:"credit,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Canceled says that the error is no more than the answer to a cancel.
	Canceled bool `json:"canceled,omitempty"`
}

// encode makes a frame's bytes, length included.
func encode(f frame) ([]byte, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	if err := fits(len(body)); err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...), nil
}

// readFrame reads one frame; io.EOF only between frames.
func readFrame(r *bufio.Reader) (frame, error) {
	var f frame
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return f, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > frameLimit {
		return f, fmt.Errorf("a frame of %d bytes (%q): at most %d are allowed", n, size, frameLimit)
	}
	body, err := readBody(r, int(n))
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("reading a frame: %w", err)
	}
	return f, nil
}

// readBody does not trust the length before the bytes are there.
func readBody(r io.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(n, step))
	for len(body) < n {
		at := len(body)
		body = append(body, make([]byte, min(n-at, step))...)
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return body, nil
}

// data makes the frame of one message, and says what it costs of the window.
func data(call uint64, kind string, body any) (bytes []byte, price int, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, 0, fmt.Errorf("encoding a %q message: %w", kind, err)
	}
	if err := fits(len(raw)); err != nil {
		return nil, 0, err
	}
	bytes, err = encode(frame{Call: call, Op: opData, Kind: kind, Body: raw})
	return bytes, cost(Message{kind, raw}), err
}

func fits(size int) error {
	if size > frameLimit {
		return fmt.Errorf("a message of %d bytes: at most %d can be sent", size, frameLimit)
	}
	return nil
}
