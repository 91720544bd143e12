// Package jute is ZooKeeper's encoding of messages (zookeeper.jute): big-endian numbers, and strings after their
// length.
package jute

import "encoding/binary"

// Message is an encoded message. The Append methods add to it, the others consume it from the front; missing bytes read
// as zero.
type Message []byte

// AppendInt adds a 32-bit number.
func (m *Message) AppendInt(v int32) { *m = binary.BigEndian.AppendUint32(*m, uint32(v)) }

// AppendLong adds a 64-bit number.
func (m *Message) AppendLong(v int64) { *m = binary.BigEndian.AppendUint64(*m, uint64(v)) }

// AppendBytes adds a buffer. Nil has the length -1.
func (m *Message) AppendBytes(v []byte) {
	if v == nil {
		m.AppendInt(-1)
		return
	}
	m.AppendInt(int32(len(v)))
	*m = append(*m, v...)
}

// AppendString adds a string.
func (m *Message) AppendString(v string) {
	m.AppendInt(int32(len(v)))
	*m = append(*m, v...)
}

// AppendBool adds a boolean.
func (m *Message) AppendBool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	*m = append(*m, b)
}

// Frame is the message as it is sent: after its length.
func (m Message) Frame() []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, lengthSize+len(m)), uint32(len(m))), m...)
}

// Sizes of a length and of numbers, in bytes.
const (
	lengthSize = 4
	longSize   = 8
)

// Cut takes the first message of a stream of frames; false: it is not complete.
func Cut(stream []byte) (m Message, rest []byte, ok bool) {
	if len(stream) < lengthSize {
		return nil, stream, false
	}
	end := lengthSize + int(binary.BigEndian.Uint32(stream))
	if len(stream) < end {
		return nil, stream, false
	}
	return stream[lengthSize:end], stream[end:], true
}

func (m *Message) take(n int) []byte {
	if n < 0 || n > len(*m) {
		*m = nil
		return nil
	}
	head := (*m)[:n]
	*m = (*m)[n:]
	return head
}

// Int reads a 32-bit number.
func (m *Message) Int() int32 {
	if b := m.take(lengthSize); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// Long reads a 64-bit number.
func (m *Message) Long() int64 {
	if b := m.take(longSize); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// Bytes reads a buffer, which is part of the message. The length -1 stands for nil.
func (m *Message) Bytes() []byte {
	n := m.Int()
	if n < 0 {
		return nil
	}
	return m.take(int(n))
}

// Text reads a string.
func (m *Message) Text() string { return string(m.Bytes()) }

// Bool reads a boolean.
func (m *Message) Bool() bool {
	b := m.take(1)
	return b != nil && b[0] != 0
}
