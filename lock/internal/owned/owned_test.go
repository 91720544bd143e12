package owned

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHolds(t *testing.T) {
	var h Holds
	mine, other := Lock{Key: "k", Owner: "me"}, Lock{Key: "k", Owner: "other"}
	h.Add(mine, 1)
	h.Add(mine, 1)
	h.Add(mine, -1)
	h.Add(other, 1)
	h.Add(other, -1)
	if h.Count(mine) != 1 || h.Count(other) != 0 || len(h.count) != 1 {
		t.Errorf("%d and %d holds of %d owners, want 1 and 0 of 1", h.Count(mine), h.Count(other), len(h.count))
	}
}

func TestWithdrawnEndsWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Withdrawn
		mine, other := Lock{Key: "k", Owner: "me"}, Lock{Key: "k", Owner: "other"}
		w.Add(mine, time.Second, 1)
		w.Add(other, time.Minute, 1)
		if !w.Has(mine) || !w.Has(other) || w.Has(Lock{Key: "other", Owner: "me"}) {
			t.Error("the claims of the two owners of one lock are not known, or too many are")
		}
		<-time.After(time.Second)
		if w.Has(mine) || !w.Has(other) {
			t.Error("a claim is known after its lease, or another one is forgotten before the end of its lease")
		}
		for range MaxWithdrawn {
			w.Add(mine, time.Second, 1)
		}
		if !w.Has(mine) || w.Has(other) {
			t.Errorf("more than the last %d claims are kept, or fewer", MaxWithdrawn)
		}
	})
}

func TestWithdrawnEndsWithTheLastConfirmation(t *testing.T) {
	var w Withdrawn
	mine := Lock{Key: "k", Owner: "me"}
	first, second := w.Add(mine, time.Hour, 2), w.Add(mine, time.Hour, 1)
	w.Confirm(second)
	w.Confirm(first)
	if !w.Has(mine) {
		t.Error("a claim is forgotten that one of two masters may have")
	}
	w.Confirm(first)
	if w.Has(mine) || len(w.list) > 0 {
		t.Error("a claim is known that all masters have confirmed to be withdrawn")
	}
}
