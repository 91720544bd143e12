package engine

import (
	"bytes"
	"slices"
)

// clone copies a value with its expiry.
func (o *object) clone() *object {
	c := *o
	c.str = bytes.Clone(o.str)
	switch v := o.val.(type) {
	case *hash:
		h := &hash{}
		for name, value := range v.all() {
			h.set(name, bytes.Clone(value))
		}
		c.val = h
	case *list:
		l := &list{}
		for _, b := range v.all() {
			l.push(b, false)
		}
		c.val = l
	case *set:
		m := &set{}
		for name := range v.all() {
			m.set(name, struct{}{})
		}
		c.val = m
	case *zset:
		z := &zset{sorted: slices.Clone(v.sorted)}
		for name, score := range v.scores.all() {
			z.scores.set(name, score)
		}
		c.val = z
	}
	return &c
}
