package engine

import "bytes"

// clone copies a value with its expiry.
func (o *object) clone() *object {
	c := *o
	c.str = bytes.Clone(o.str)
	switch v := o.val.(type) {
	case *hash:
		h := &hash{}
		for name, value := range v.fields.all() {
			h.fields.set(name, bytes.Clone(value))
		}
		c.val = h
	}
	return &c
}
