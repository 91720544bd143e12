package locktest

// table is the behaviour that is asked of a lock.
func table() []behaviour {
	var all []behaviour
	all = append(all, peace...)
	all = append(all, endings...)
	return append(all, trouble...)
}

func leased(s Spec) bool     { return s.Lease > 0 }
func tells(s Spec) bool      { return s.Tells }
func renews(s Spec) bool     { return s.Renews }
func fences(s Spec) bool     { return s.Fences }
func reentrant(s Spec) bool  { return s.Reentrant }
func idempotent(s Spec) bool { return s.Idempotent }
