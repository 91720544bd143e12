package edn

import "bytes"

// fewKeys is up to how many keys of a map each is compared with each.
const fewKeys = 16

// unique notes a key that stands twice in a map, which neither notation allows
// and either reader would resolve in its own way. Only words are looked at: no
// field has another name.
func (r *Reader) unique(v Value) {
	if r.twice != "" {
		return
	}
	if len(v.Items) > 2*fewKeys {
		seen := make(map[string]bool, len(v.Items)/2)
		for i := 0; i < len(v.Items); i += 2 {
			if key := &v.Items[i]; key.isName() {
				if seen[key.Text] {
					r.twice = key.Text
				}
				seen[key.Text] = true
			}
		}
		return
	}
	for i := 2; i < len(v.Items); i += 2 {
		for j := 0; j < i; j += 2 {
			if a, b := &v.Items[i], &v.Items[j]; a.Text == b.Text && a.isName() && b.isName() {
				r.twice = a.Text
			}
		}
	}
}

// isName says that a key is what [Value.Get] can be asked for.
func (v *Value) isName() bool { return v.Kind == Keyword || v.Kind == String || v.Kind == Symbol }

// eventBegins says that c, inside a collection, is the first byte of a line on
// which an event begins: nothing else stands at the start of a line in a history
// of a map per line, and printers indent what is inside a map.
func (r *Reader) eventBegins(c byte) bool {
	if r.form < 0 || r.json || c != '{' && c != '#' {
		return false
	}
	if at := r.place(); at.column != 1 || at.line == r.from.line {
		return false
	}
	head := r.ahead(32)
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

// ahead is what follows, up to n bytes of it, without consuming it.
func (r *Reader) ahead(n int) []byte {
	for tries := 0; len(r.buf)-r.i < n && r.end == nil && tries < 100; tries++ {
		r.base += int64(r.i)
		r.buf = r.buf[:copy(r.buf[:cap(r.buf)], r.buf[r.i:])]
		r.i = 0
		got, err := r.r.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf, r.end = r.buf[:len(r.buf)+got], err
	}
	return r.buf[r.i:min(len(r.buf), r.i+n)]
}
