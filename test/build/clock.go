package build

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

const (
	// ClockVariable is the environment variable of the program of Clock with the seconds by
	// which its clock is ahead.
	ClockVariable = "PREFLIGHT_TEST_CLOCK_AHEAD"
	// clockProgram is the name of that program.
	clockProgram = "oc-preflight-clock"
	// commandDirectory has the package of oc-preflight.
	commandDirectory = "cmd/oc-preflight"
)

// clock is oc-preflight with a clock that is adjustable. The clock is a change of the standard
// library, so that the product has no code for it.
func clock() Step {
	return Step{
		Name: "oc-preflight with another clock", Dir: ".", About: 4 * time.Minute,
		Packages: []string{"./" + commandDirectory}, Program: clockProgram,
		Changes: []Change{
			{
				File: "time/time.go",
				Old:  "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n",
				New:  "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tsec += int64(ahead)\n",
			},
			{File: "time/ahead.go", New: fmt.Sprintf(`package time

import "syscall"

var ahead = func() int {
	text, _ := syscall.Getenv(%q)
	seconds, _ := atoi(text)
	return seconds
}()
`, ClockVariable)},
		},
	}
}

// Clock returns the path of oc-preflight with an adjustable clock, which "make release-tools"
// builds. The source files of oc-preflight are inputs of the test that calls Clock.
func Clock(ctx context.Context) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	files, err := sources(ctx, root, filepath.Join(root, filepath.FromSlash(commandDirectory)))
	if err != nil {
		return "", err
	}
	return built(root, clockProgram, "make release-tools", files...)
}
