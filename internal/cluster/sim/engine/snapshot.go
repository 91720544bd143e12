package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// snapshotMagic is the beginning of a snapshot; its last byte is the format version.
const snapshotMagic = "lockchaos engine\x01"

// Snapshot is the data set: keys, values and expiries, including keys that have expired.
// It does not include scripts: neither a restarted server nor a replica has them. The
// same data set built in the same way gives the same bytes.
func (s *Server) Snapshot() []byte {
	b := []byte(snapshotMagic)
	for _, db := range s.dbs {
		b = binary.AppendUvarint(b, uint64(db.keys.len()))
		for key, o := range db.keys.all() {
			b = appendText(b, key)
			b = append(b, byte(o.kind))
			b = binary.AppendVarint(b, o.expires)
			b = o.append(b)
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func (o *object) append(b []byte) []byte {
	switch v := o.val.(type) {
	case *hash:
		b = binary.AppendUvarint(b, uint64(v.fields.len()))
		for name, value := range v.fields.all() {
			b = appendText(appendText(b, name), string(value))
		}
	case *list:
		b = binary.AppendUvarint(b, uint64(v.len()))
		for _, item := range v.all() {
			b = appendText(b, string(item))
		}
	case *set:
		b = binary.AppendUvarint(b, uint64(v.members.len()))
		for name := range v.members.all() {
			b = appendText(b, name)
		}
	case *zset:
		b = binary.AppendUvarint(b, uint64(v.scores.len()))
		for name, score := range v.scores.all() {
			b = binary.BigEndian.AppendUint64(appendText(b, name), math.Float64bits(score))
		}
	default:
		b = appendText(b, string(o.str))
	}
	return b
}

// Load replaces the data set by that of a snapshot. Watched keys count as changed. An
// invalid snapshot changes nothing.
func (s *Server) Load(snapshot []byte) error {
	r := snapshotReader{b: snapshot}
	if string(r.take(len(snapshotMagic))) != snapshotMagic {
		return errors.New("loading a snapshot: it is not one of this version")
	}
	next := New(Config{Now: s.cfg.Now, Seed: s.cfg.Seed})
	next.applying = true // no key expires meanwhile
	for db := range next.dbs {
		for range r.count() {
			key := r.text()
			if r.bad {
				break
			}
			if o := r.object(); o != nil {
				next.store(db, key, o)
			}
		}
	}
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("loading a snapshot of %d bytes: it is damaged before byte %d", len(snapshot),
			len(snapshot)-len(r.b))
	}
	s.enter()
	defer s.leave()
	for db := range s.dbs {
		s.flush(db)
		s.dbs[db] = next.dbs[db]
		for key, o := range s.dbs[db].keys.all() {
			s.touch(db, key)
			s.signalReady(db, []byte(key), o)
		}
	}
	s.expiries, s.volatile = next.expiries, next.volatile
	return nil
}

// snapshotReader parses a snapshot; once bad, it returns zero values.
type snapshotReader struct {
	b   []byte
	bad bool
}

func (r *snapshotReader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	part := r.b[:n]
	r.b = r.b[n:]
	return part
}

// count reads how many items follow; each has at least one byte.
func (r *snapshotReader) count() int {
	n, used := binary.Uvarint(r.b)
	if r.bad || used <= 0 || n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	r.b = r.b[used:]
	return int(n)
}

func (r *snapshotReader) text() []byte { return r.take(r.count()) }

func (r *snapshotReader) object() *object {
	kindByte := r.take(1)
	expires, used := binary.Varint(r.b)
	if r.bad || used <= 0 || kindByte[0] > byte(kindZSet) {
		r.bad = true
		return nil
	}
	r.b = r.b[used:]
	o := &object{kind: kind(kindByte[0]), expires: expires}
	switch o.kind {
	case kindString:
		o.str = append([]byte{}, r.text()...)
		return o
	case kindHash:
		o.val = &hash{}
	case kindList:
		o.val = &list{}
	case kindSet:
		o.val = &set{}
	case kindZSet:
		o.val = &zset{}
	}
	n := r.count()
	if n == 0 { // an empty collection does not exist
		r.bad = true
	}
	for range n {
		r.item(o)
	}
	return o
}

func (r *snapshotReader) item(o *object) {
	name := r.text()
	if r.bad {
		return
	}
	switch o.kind {
	case kindHash:
		o.setField(name, r.text())
	case kindList:
		o.list().push(name, false)
	case kindSet:
		o.addMember(name)
	case kindZSet:
		if bits := r.take(8); bits != nil {
			f := math.Float64frombits(binary.BigEndian.Uint64(bits))
			r.bad = math.IsNaN(f)
			o.setScore(string(name), f)
		}
	}
}
