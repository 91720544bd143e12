//go:build race

package runner

const raceDetector = true
