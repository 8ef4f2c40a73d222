package hoststat

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

const (
	depthMax = 32       // of nested values; sysstat's have eight
	textMax  = 64 << 10 // of one string or number
	nodeMax  = 1 << 20  // values in one sample; sysstat's have some thousands
)

// errCut says that the document ended in the middle.
var errCut = errors.New("the document ends in the middle")

// scanner takes JSON apart. Commas are read as space, so that missing,
// repeated and dangling ones, which releases of sysstat have written, do no
// harm; keys are told from other strings by their colon.
type scanner struct {
	r     *bufio.Reader
	at    int64 // bytes read
	nodes int   // values read of the present sample
}

func newScanner(r io.Reader) *scanner { return &scanner{r: bufio.NewReaderSize(r, 64<<10)} }

// token is one of { } [ ] : or s (a string) or v (a number or word).
type token struct {
	kind byte
	text string
}

func (s *scanner) fail(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", s.at, fmt.Sprintf(format, args...))
}

func (s *scanner) readByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err == nil {
		s.at++
	}
	return b, err
}

// next reads a token; io.EOF at the end.
func (s *scanner) next() (token, error) {
	for {
		b, err := s.readByte()
		if err != nil {
			return token{}, err
		}
		switch b {
		case ' ', '\t', '\r', '\n', ',':
		case '{', '}', '[', ']', ':':
			return token{kind: b}, nil
		case '"':
			return s.text()
		default:
			return s.word(b)
		}
	}
}

func (s *scanner) text() (token, error) {
	var out []byte
	escaped := false
	for {
		b, err := s.readByte()
		switch {
		case errors.Is(err, io.EOF):
			return token{}, errCut
		case err != nil:
			return token{}, err
		case len(out) > textMax:
			return token{}, s.fail("a string longer than %d bytes", textMax)
		case b == '"':
			return s.unquote(out, escaped)
		}
		out = append(out, b)
		if b == '\\' {
			escaped = true
			if b, err = s.readByte(); err != nil {
				return token{}, errCut
			}
			out = append(out, b)
		}
	}
}

func (s *scanner) unquote(raw []byte, escaped bool) (token, error) {
	if !escaped {
		return token{'s', string(raw)}, nil
	}
	var text string
	if err := json.Unmarshal(append(append([]byte{'"'}, raw...), '"'), &text); err != nil {
		return token{}, s.fail("a string that is none: %q", raw)
	}
	return token{'s', text}, nil
}

func (s *scanner) word(first byte) (token, error) {
	out := []byte{first}
	for {
		b, err := s.r.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return token{'v', string(out)}, nil
		case err != nil:
			return token{}, err
		case len(out) > textMax:
			return token{}, s.fail("a word longer than %d bytes", textMax)
		case strings.IndexByte(" \t\r\n,:{}[]\"", b) >= 0:
			return token{'v', string(out)}, s.r.UnreadByte()
		}
		s.at++
		out = append(out, b)
	}
}

// node is one JSON value. In an object keys and kids pair up, in the order of
// the file; a key may be there twice.
type node struct {
	kind byte   // { [ s v
	text string // of s and v
	keys []string
	kids []node
}

// value reads the value that begins with t.
func (s *scanner) value(t token, depth int) (node, error) {
	if s.nodes++; s.nodes > nodeMax {
		return node{}, s.fail("more than %d values in one sample", nodeMax)
	}
	if depth > depthMax {
		return node{}, s.fail("nested deeper than %d", depthMax)
	}
	switch t.kind {
	case 's', 'v':
		return node{kind: t.kind, text: t.text}, nil
	case '[':
		return s.array(depth)
	case '{':
		return s.object(depth)
	}
	return node{}, s.fail("%q where a value should be", t.kind)
}

// inner is [scanner.next] inside a value, where the end is a cut.
func (s *scanner) inner() (token, error) {
	t, err := s.next()
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	return t, err
}

func (s *scanner) array(depth int) (node, error) {
	n := node{kind: '['}
	for {
		t, err := s.inner()
		if err != nil || t.kind == ']' {
			return n, err
		}
		kid, err := s.value(t, depth+1)
		if err != nil {
			return n, err
		}
		n.kids = append(n.kids, kid)
	}
}

func (s *scanner) object(depth int) (node, error) {
	n := node{kind: '{'}
	for {
		key, err := s.inner()
		if err != nil || key.kind == '}' {
			return n, err
		}
		t, err := s.colon(key)
		if err != nil {
			return n, err
		}
		kid, err := s.value(t, depth+1)
		if err != nil {
			return n, err
		}
		n.keys, n.kids = append(n.keys, key.text), append(n.kids, kid)
	}
}

// colon reads the colon after a key and the first token of its value.
func (s *scanner) colon(key token) (token, error) {
	if key.kind != 's' {
		return token{}, s.fail("%q where a key should be", key.kind)
	}
	t, err := s.inner()
	if err != nil {
		return t, err
	}
	if t.kind != ':' {
		return t, s.fail("no colon after %q", key.text)
	}
	return s.inner()
}

// all are the values of every key of that name.
func (n node) all(key string) []node {
	var out []node
	for i, k := range n.keys {
		if k == key {
			out = append(out, n.kids[i])
		}
	}
	return out
}

// get is the first value of a key.
func (n node) get(key string) (node, bool) {
	for i, k := range n.keys {
		if k == key {
			return n.kids[i], true
		}
	}
	return node{}, false
}

func (n node) str(key string) string {
	v, _ := n.get(key)
	return v.text
}

// num is a number by the first of several names that is there; nil when none is.
func (n node) num(keys ...string) *float64 {
	for _, key := range keys {
		v, ok := n.get(key)
		if !ok {
			continue
		}
		f, err := strconv.ParseFloat(strings.Replace(v.text, ",", ".", 1), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
		return &f
	}
	return nil
}

// handlers take the parts of a sysstat document as they come.
type handlers struct {
	header  func(key, value string)
	sample  func(node)
	restart func(node)
}

// document walks sysstat's JSON. cut tells that it ended in the middle, which
// is no error: the samples before were handed on.
func document(r io.Reader, h handlers) (cut bool, err error) {
	s := newScanner(r)
	for {
		t, err := s.next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err == nil && t.kind != '{' {
			err = s.fail("not sysstat's JSON")
		}
		if err == nil {
			err = s.walk(h, 0)
		}
		if errors.Is(err, errCut) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// walk goes through an object or array whose opening was read.
func (s *scanner) walk(h handlers, depth int) error {
	if depth > depthMax {
		return s.fail("nested deeper than %d", depthMax)
	}
	for {
		t, err := s.inner()
		if err != nil || t.kind == '}' || t.kind == ']' {
			return err
		}
		key := ""
		if t.kind == 's' {
			key = t.text
			if t, err = s.colon(t); err != nil {
				return err
			}
		}
		switch {
		case t.kind == '[' && key == "statistics":
			err = s.elements(h.sample)
		case t.kind == '[' && key == "restarts":
			err = s.elements(h.restart)
		case t.kind == '{' || t.kind == '[':
			err = s.walk(h, depth+1)
		case h.header != nil:
			h.header(key, t.text)
		}
		if err != nil {
			return err
		}
	}
}

// elements hands on each complete element of an array.
func (s *scanner) elements(do func(node)) error {
	for {
		t, err := s.inner()
		if err != nil || t.kind == ']' {
			return err
		}
		s.nodes = 0
		n, err := s.value(t, 0)
		if err != nil {
			return err
		}
		if do != nil {
			do(n)
		}
	}
}
