package style

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// banned are words and phrases that are not plain technical English, or that this project once used in a sense of its
// own. docs/explanation/glossary.md has the terms to use instead.
var banned = regexp.MustCompile(`(?i)\b(` + strings.Join([]string{
	`told`, `tells?`, `telling`, `teller`, `untold`, `whoever`, `whomever`, `anew`, `wholly`, `afresh`,
	`stands? still`, `stood still`, `standing still`, `(let|lets) (it|them|him) go on`, `goes on`, `go on`, `went on`,
	`gone on`, `going on`, `in (its|his|their|another's) power`, `of his own`, `nobody else's`, `somebody else's`,
	`babble`, `footing`, `happening`, `lonely`, `calm`, `grip`, `bears?`, `makes? known`, `the like`,
	`stretch(es)? of time`, `(could|can) not be had`, `(has|have) to be had`, `looks? after`, `by and by`,
	`bites?`, `bitten`, `biting`, `mends?`, `mended`, `mending`, `everybody`, `anybody`, `riddles?`, `lest`, `whence`,
	`thereby`, `peace`, `equipment`, `nobody reads`, `makes no run`, `not even take`, `grants on`, `lets? loose`, `lines narrow`,
}, "|") + `)\b`)

// formerNames are identifiers that gave way to the terms of docs/explanation/glossary.md.
var formerNames = regexp.MustCompile(`^(Sole|Ground|Site|Grip|Footing|Babble|Bear|Weigh|Happening|keeper|calm|lonely)$`)

// TestPlainWords holds banned words out of identifiers, comments, strings and pages.
func TestPlainWords(t *testing.T) {
	for _, path := range files(t, ".go") {
		if path == "internal/style/words_test.go" {
			continue
		}
		for _, found := range bannedInGo(t, path, read(t, path)) {
			t.Error(found)
		}
	}
	for _, path := range files(t, ".md", ".yaml", ".html", ".js", ".css", ".lua", ".c", ".py", ".mjs", ".yml") {
		for i, line := range strings.Split(read(t, path), "\n") {
			for _, word := range banned.FindAllString(line, -1) {
				t.Errorf("%s:%d: %q: see docs/explanation/glossary.md", path, i+1, word)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bannedInGo finds banned words in the tokens of a Go file. An identifier counts as the words it is made of.
func bannedInGo(t *testing.T, path, text string) []string {
	t.Helper()
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(path, -1, len(text)), []byte(text), nil, scanner.ScanComments)
	var found []string
	for {
		pos, tok, lit := s.Scan()
		switch tok {
		case token.EOF:
			return found
		case token.IDENT:
			if formerNames.MatchString(lit) {
				found = append(found, set.Position(pos).String()+": "+lit+": see docs/explanation/glossary.md")
				continue
			}
			lit = words(lit)
		case token.COMMENT:
			lit = strings.Join(strings.Fields(strings.ReplaceAll(lit, "//", " ")), " ")
		case token.STRING:
		default:
			continue
		}
		for _, word := range banned.FindAllString(lit, -1) {
			found = append(found, set.Position(pos).String()+": "+word+": see docs/explanation/glossary.md")
		}
	}
}

// words splits an identifier: "waitQueue" is "wait Queue".
func words(identifier string) string {
	var b strings.Builder
	for i, r := range identifier {
		previous, _ := utf8.DecodeLastRuneInString(identifier[:i])
		if r == '_' || i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(previous) {
			b.WriteByte(' ')
		}
		if r != '_' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestBannedWordsAreFound(t *testing.T) {
	text := "package p\n\n// The client is\n// told.\nfunc (x *T) tellAll() { print(`whoever`, gone_on) }\ntype Grip struct{ x Agrip }\n"
	want := []string{"p.go:4:1: told", "p.go:5:13: tell", "p.go:5:31: whoever", "p.go:5:42: gone on", "p.go:6:6: Grip"}
	found := bannedInGo(t, "p.go", text)
	for i := range want {
		if len(found) != len(want) || !strings.HasPrefix(found[i], want[i]) {
			t.Fatalf("got %q, want %q", found, want)
		}
	}
}

// TestPagesAreNarrow: lines of Markdown are at most 120 columns wide, except in tables and code, and where a link
// cannot be broken.
func TestPagesAreNarrow(t *testing.T) {
	for _, path := range files(t, ".md") {
		code := false
		for i, line := range strings.Split(read(t, path), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			free := code || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "    ") || strings.Contains(line, "](")
			if n := utf8.RuneCountInString(line); n > 120 && !free {
				t.Errorf("%s:%d: the line has %d characters, more than 120", path, i+1, n)
			}
		}
	}
}
