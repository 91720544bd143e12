package engine

import (
	"fmt"
	"math"
	"strconv"
)

// The Write methods append to the reply of the current command. Those of RESP3 types
// write their RESP2 form, unless the client has sent HELLO 3.

// WriteStatus writes a simple string, as in "OK".
func (c *Conn) WriteStatus(s string) { c.line('+', s) }

// WriteError writes an error, which begins with its code, as in "ERR no such key".
func (c *Conn) WriteError(s string) {
	c.failed = true
	c.s.countError(s)
	c.dirtyOut()
	c.out = append(c.out, '-')
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b == '\r' || b == '\n' { // ends the reply
			b = ' '
		}
		c.out = append(c.out, b)
	}
	c.out = append(c.out, '\r', '\n')
}

// refusal ends a command that has written an error, see [Conn.Fail].
type refusal struct{}

// Fail writes an error and ends the command, from any depth: the parsers of arguments need not return errors. It may be
// called only by a command, not for a client that was blocked and is served or times out later: nothing recovers there.
func (c *Conn) Fail(s string) {
	c.WriteError(s)
	panic(refusal{})
}

// FailIf is Fail under a condition.
func (c *Conn) FailIf(bad bool, s string) {
	if bad {
		c.Fail(s)
	}
}

// WriteInt writes an integer.
func (c *Conn) WriteInt(n int64) { c.number(':', n) }

// WriteBulk writes a string of bytes.
func (c *Conn) WriteBulk(b []byte) { c.WriteBulkString(view(b)) }

// WriteBulkString writes a string of bytes.
func (c *Conn) WriteBulkString(s string) {
	c.number('$', int64(len(s)))
	c.out = append(c.out, s...)
	c.out = append(c.out, '\r', '\n')
}

// WriteNull writes a null.
func (c *Conn) WriteNull() {
	if c.resp == 3 {
		c.line('_', "")
		return
	}
	c.line('$', "-1")
}

// WriteNullArray writes a null array.
func (c *Conn) WriteNullArray() {
	if c.resp == 3 {
		c.line('_', "")
		return
	}
	c.line('*', "-1")
}

// WriteArray begins an array of n elements, which must be written next.
func (c *Conn) WriteArray(n int) { c.number('*', int64(n)) }

// WriteMap begins a map of n pairs.
func (c *Conn) WriteMap(n int) { c.writeAggregate('%', n, 2*n) }

// WriteSet begins a set of n elements.
func (c *Conn) WriteSet(n int) { c.writeAggregate('~', n, n) }

// WritePush begins an out-of-band message of n elements.
func (c *Conn) WritePush(n int) { c.writeAggregate('>', n, n) }

// writeAggregate begins an aggregate of n items of a type of RESP3, in RESP2 an array of flat elements.
func (c *Conn) writeAggregate(kind byte, n, flat int) {
	if c.resp == 3 {
		c.number(kind, int64(n))
		return
	}
	c.number('*', int64(flat))
}

// WriteDouble writes a double.
func (c *Conn) WriteDouble(f float64) {
	if c.resp == 3 {
		c.line(',', formatScore(f))
		return
	}
	c.WriteBulkString(formatScore(f))
}

// WriteVerbatim writes a verbatim string.
func (c *Conn) WriteVerbatim(s string) {
	if c.resp != 3 {
		c.WriteBulkString(s)
		return
	}
	c.number('=', int64(len(s)+4))
	c.out = append(c.out, "txt:"...)
	c.out = append(c.out, s...)
	c.out = append(c.out, '\r', '\n')
}

// Fields are the names and values of a map, in order.
type Fields []any

// Write writes a value with all that is in it: a string, an integer, a double, a list, [Fields]; null for nil.
func (c *Conn) Write(v any) {
	switch v := v.(type) {
	case string:
		c.WriteBulkString(v)
	case []byte:
		c.WriteBulk(v)
	case int:
		c.WriteInt(int64(v))
	case int64:
		c.WriteInt(v)
	case float64:
		c.WriteDouble(v)
	case []string:
		c.writeStrings(v)
	case []any:
		c.WriteArray(len(v))
		c.writeEach(v)
	case Fields:
		c.WriteMap(len(v) / 2)
		c.writeEach(v)
	case nil:
		c.WriteNull()
	default:
		panic(fmt.Sprintf("a reply cannot have a %T", v))
	}
}

func (c *Conn) writeEach(values []any) {
	for _, v := range values {
		c.Write(v)
	}
}

func (c *Conn) writeStrings(list []string) {
	c.WriteArray(len(list))
	for _, s := range list {
		c.WriteBulkString(s)
	}
}

func (c *Conn) writeOK() { c.line('+', "OK") }

func (c *Conn) writeBool(b bool) {
	if b {
		c.WriteInt(1)
		return
	}
	c.WriteInt(0)
}

func (c *Conn) line(kind byte, s string) {
	c.dirtyOut()
	c.out = append(c.out, kind)
	c.out = append(c.out, s...)
	c.out = append(c.out, '\r', '\n')
}

func (c *Conn) number(kind byte, n int64) {
	c.dirtyOut()
	c.out = append(c.out, kind)
	c.out = strconv.AppendInt(c.out, n, 10)
	c.out = append(c.out, '\r', '\n')
}

// dirtyOut marks the connection to be flushed at the end of the execution unit.
func (c *Conn) dirtyOut() {
	if !c.pending && c.push != nil {
		c.pending = true
		c.s.unflushed = append(c.s.unflushed, c)
	}
}

// formatScore formats a double as Redis 7.0 does, with %.17g.
func formatScore(f float64) string { return formatG(f, 17) }

// formatG formats as C does with %.*g.
func formatG(f float64, precision int) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f) && math.Signbit(f):
		return "-nan"
	case math.IsNaN(f):
		return "nan"
	}
	return strconv.FormatFloat(f, 'g', precision, 64)
}
