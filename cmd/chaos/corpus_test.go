package main

import "testing"

// TestCorpusFolder: a corpus is a folder, also as a file URL; anything else is refused.
func TestCorpusFolder(t *testing.T) {
	for text, want := range map[string]string{
		"shared/corpus":              "shared/corpus",
		"file:///mnt/corpus":         "/mnt/corpus",
		"file:///mnt/corpus?query=1": "/mnt/corpus",
		"file://mnt/corpus":          "",
		"file://":                    "",
		"s3://bucket?region=eu":      "",
		"gs://bucket":                "",
		"://":                        "",
	} {
		got, err := corpusFolder(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
