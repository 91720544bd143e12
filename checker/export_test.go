package checker

// Rules are the names of a property's rules.
func Rules(p Property) []string {
	s, _ := Find(p)
	return s.rules
}

// Without is o with one rule of a property switched off.
func Without(o Options, p Property, rule int) Options {
	o.off = disabledRules{of: p, rules: 1 << rule}
	return o
}

// Absent are the reasons for which a property is not applicable.
func Absent(p Property) []string {
	s, _ := Find(p)
	return s.absent
}
