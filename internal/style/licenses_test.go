package style

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/golden"
)

// licenseFile is a name of a file with a license or a notice. Licenses of documentation do not concern a program.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|ftl)([.-].*)?$`)

// licenses are the phrases by which the text of a license is known, and its SPDX identifier, in the order of the
// search.
func licenses() [][2]string {
	return [][2]string{
		{"SIL OPEN FONT LICENSE", "OFL-1.1"},
		{"The FreeType Project LICENSE", "FTL"},
		{"Creative Commons Attribution 4.0", "CC-BY-4.0"},
		{"Apache License Version 2.0", "Apache-2.0"},
		{"Mozilla Public License Version 2.0", "MPL-2.0"},
		{"Permission is hereby granted, free of charge", "MIT"},
		{"Permission to use, copy, modify, and/or distribute this software", "ISC"},
		{"may be used to endorse or promote products derived", "BSD-3-Clause"},
		{"Redistribution and use in source and binary forms", "BSD-2-Clause"},
	}
}

// linked is a module that the program links.
type linked struct {
	path, version string
	names         map[string]bool // SPDX identifiers
	texts         map[string]bool
}

// TestLicensesOfTheProgram: THIRD_PARTY_LICENSES.txt has each module that chaos links on Linux or macOS, with the text
// and a known name of its licenses. The flag -update writes it.
func TestLicensesOfTheProgram(t *testing.T) {
	modules := map[string]*linked{}
	for _, system := range []string{"linux", "darwin"} {
		list := exec.Command("go", "list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/chaos")
		list.Dir, list.Env = root, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			field := strings.Split(strings.TrimSpace(line), "\t")
			if len(field) < 4 {
				continue
			}
			m := modules[field[0]]
			if m == nil {
				m = &linked{path: field[0], version: field[1], names: map[string]bool{}, texts: map[string]bool{}}
				modules[m.path] = m
			}
			for dir := field[3]; strings.HasPrefix(dir, field[2]); dir = filepath.Dir(dir) {
				m.read(t, dir)
			}
		}
	}
	std := *modules["golang.org/x/sys"] // has the license of Go itself
	std.path, std.version = "Go standard library and runtime", ""
	modules[std.path] = &std
	golden.File(t, filepath.Join(root, "THIRD_PARTY_LICENSES.txt"), thirdParties(t, modules))
}

// read reads the licenses and notices in a directory.
func (m *linked) read(t *testing.T, dir string) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(dir, "*"))
	more, _ := filepath.Glob(filepath.Join(dir, "licenses", "*")) // freetype: one of several, by choice
	for _, path := range append(paths, more...) {
		name := filepath.Base(path)
		if info, err := os.Stat(path); err != nil || info.IsDir() || !licenseFile.MatchString(name) ||
			strings.HasSuffix(name, ".docs") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t")
		}
		text := strings.Trim(strings.Join(lines, "\n"), "\n\f")
		m.texts[text] = true
		flat := strings.Join(strings.Fields(text), " ")
		for _, known := range licenses() {
			if strings.Contains(flat, known[0]) {
				m.names[known[1]] = true
				break
			}
		}
	}
}

// thirdParties is the text of the file: a line for each module, then each text once.
func thirdParties(t *testing.T, modules map[string]*linked) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("The program chaos contains the following modules under these licenses. Generated from go.mod by\n" +
		"go test ./internal/style -run TestLicensesOfTheProgram -update\n\n")
	users := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		if len(m.names) == 0 {
			t.Errorf("%s %s: its license is not known: read it, and add it to the list of this test", name, m.version)
		}
		names := strings.Join(slices.Sorted(maps.Keys(m.names)), ", ")
		fmt.Fprintf(&b, "%s: %s\n", strings.TrimSpace(name+" "+m.version), names)
		for text := range m.texts { // order does not matter
			users[text] = append(users[text], name)
		}
	}
	texts := slices.SortedFunc(maps.Keys(users), func(a, c string) int {
		if first := strings.Compare(users[a][0], users[c][0]); first != 0 {
			return first
		}
		return strings.Compare(a, c)
	})
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[text], "\n"), text)
	}
	return b.String()
}
