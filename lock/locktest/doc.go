// Package locktest holds a lock to what a distributed lock must do, on real
// servers: one table of behaviour for every kind and topology, for the locks of
// this project and for anybody's own. It is not a chaos harness: it takes the
// faults that fit into a unit test (lost answers, cut connections, leases that
// run out), and cmd/chaos takes the rest.
//
// Read [Spec] first, then [Run].
package locktest
