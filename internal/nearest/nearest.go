// Package nearest suggests the name that a user probably meant, for error messages.
package nearest

import "strings"

// To is the name closest to word, or "" if none is close: at most a third of the
// letters of word differ, or word is a prefix.
func To(word string, names []string) string {
	best, bestAway := "", 1+len(word)/3
	for _, name := range names {
		away := distance(strings.ToLower(word), strings.ToLower(name))
		if strings.HasPrefix(name, word) && word != "" {
			away = min(away, 1)
		}
		if away <= bestAway && (best == "" || away < bestAway) {
			best, bestAway = name, away
		}
	}
	return best
}

// Hint is " (did you mean x?)", or "; known are …" if nothing is close.
func Hint(word string, names []string) string {
	return Or(word, names, "; known are "+strings.Join(names, ", "))
}

// Or is " (did you mean x?)", or otherwise if nothing is close: for names that are too many to list in an error.
func Or(word string, names []string, otherwise string) string {
	if name := To(word, names); name != "" {
		return " (did you mean " + name + "?)"
	}
	return otherwise
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		corner := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := corner
			if a[i-1] != b[j-1] {
				change++
			}
			corner = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
