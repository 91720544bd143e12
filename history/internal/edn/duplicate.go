package edn

import "bytes"

// maxCompared is the number of keys of a map up to which each is compared with each.
const maxCompared = 16

// checkDuplicates records a key that a map has twice, which neither format allows and readers resolve differently. It
// compares only names, because every field has one.
func (r *Reader) checkDuplicates(v Value) {
	if r.duplicate != "" {
		return
	}
	if len(v.Items) > 2*maxCompared {
		seen := make(map[string]bool, len(v.Items)/2)
		for i := 0; i < len(v.Items); i += 2 {
			if key := &v.Items[i]; key.isName() {
				if seen[key.Text] {
					r.duplicate = key.Text
				}
				seen[key.Text] = true
			}
		}
		return
	}
	for i := 2; i < len(v.Items); i += 2 {
		for j := 0; j < i; j += 2 {
			if a, b := &v.Items[i], &v.Items[j]; a.Text == b.Text && a.isName() && b.isName() {
				r.duplicate = a.Text
			}
		}
	}
}

// isName reports whether [Value.Get] can find v as a key.
func (v *Value) isName() bool { return v.Kind == Keyword || v.Kind == String || v.Kind == Symbol }

// startsEvent reports whether c, inside a collection, is the first byte of a line on which an event starts: in a
// history of a map per line nothing else is at the start of a line, and printers indent the content of a map.
func (r *Reader) startsEvent(c byte) bool {
	if r.form < 0 || r.json || c != '{' && c != '#' {
		return false
	}
	if at := r.position(); at.column != 1 || at.line == r.formStart.line {
		return false
	}
	head := r.peekN(32)
	if c == '#' {
		return bytes.HasPrefix(head, []byte("#jepsen.history.Op{"))
	}
	for _, name := range []string{"{:index ", "{:type ", "{:process ", "{:time ", "{:f "} {
		if bytes.HasPrefix(head, []byte(name)) {
			return true
		}
	}
	return false
}

// peekN returns up to n of the next bytes, without consuming them.
func (r *Reader) peekN(n int) []byte {
	for tries := 0; len(r.buf)-r.i < n && r.end == nil && tries < 100; tries++ {
		r.base += int64(r.i)
		r.buf = r.buf[:copy(r.buf[:cap(r.buf)], r.buf[r.i:])]
		r.i = 0
		got, err := r.r.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf, r.end = r.buf[:len(r.buf)+got], err
	}
	return r.buf[r.i:min(len(r.buf), r.i+n)]
}
