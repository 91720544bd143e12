package jute_test

import (
	"slices"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
)

// TestRoundTrip: appended values are read back, in order, and missing bytes read as zero.
func TestRoundTrip(t *testing.T) {
	var m jute.Message
	m.AppendInt(-2)
	m.AppendLong(-1 << 63)
	m.AppendBool(true)
	m.AppendBytes(nil)
	m.AppendBytes([]byte{})
	m.AppendBytes([]byte{0, 255})
	m.AppendString("é")
	m.AppendBool(false)
	if i, l, b := m.Int(), m.Long(), m.Bool(); i != -2 || l != -1<<63 || !b {
		t.Errorf("read %d, %d, %v", i, l, b)
	}
	if none, empty := m.Bytes(), m.Bytes(); none != nil || empty == nil || len(empty) != 0 {
		t.Errorf("nil was read as %#v, an empty buffer as %#v", none, empty)
	}
	if b, s, last := m.Bytes(), m.Text(), m.Bool(); !slices.Equal(b, []byte{0, 255}) || s != "é" || last || len(m) != 0 {
		t.Errorf("read %v, %q, %v; %d bytes remain", b, s, last, len(m))
	}
	if i, l, b, s := m.Int(), m.Long(), m.Bytes(), m.Text(); i != 0 || l != 0 || b != nil || s != "" {
		t.Errorf("read %d, %d, %v, %q from an empty message", i, l, b, s)
	}
}

// TestEncoding: numbers are big-endian, and strings come after their length.
func TestEncoding(t *testing.T) {
	var m jute.Message
	m.AppendInt(1)
	m.AppendLong(2)
	m.AppendString("ab")
	m.AppendBool(true)
	m.AppendBytes(nil)
	want := "\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x02" + "\x00\x00\x00\x02ab" + "\x01" + "\xff\xff\xff\xff"
	if string(m) != want {
		t.Errorf("encoded %q, want %q", m, want)
	}
}

// TestCut: a stream of frames is cut into messages, and a message that is not complete stays.
func TestCut(t *testing.T) {
	stream := append(jute.Message("one").Frame(), jute.Message("").Frame()...)
	whole := len(stream)
	stream = append(stream, jute.Message("three").Frame()...)
	for n := whole; n < len(stream); n++ {
		first, rest, ok1 := jute.Cut(stream[:n])
		second, rest, ok2 := jute.Cut(rest)
		third, rest, ok3 := jute.Cut(rest)
		if string(first) != "one" || len(second) != 0 || third != nil || !ok1 || !ok2 || ok3 || len(rest) != n-whole {
			t.Errorf("%d bytes: %q %v, %q %v, %q %v, %d bytes remain", n, first, ok1, second, ok2, third, ok3, len(rest))
		}
	}
	if third, rest, ok := jute.Cut(stream[whole:]); string(third) != "three" || !ok || len(rest) != 0 {
		t.Errorf("the last message is %q, %v", third, ok)
	}
}

// TestWrongLength: a length beyond the end of the message, or a negative one, reads as nil.
func TestWrongLength(t *testing.T) {
	for _, text := range []string{"\x00\x00\x00\x05abcd", "\xff\xff\xff\xfeabcd", "\x7f\xff\xff\xff"} {
		m := jute.Message(text)
		if b := m.Bytes(); b != nil {
			t.Errorf("read %q", b)
		}
	}
}
