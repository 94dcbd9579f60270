package preflighttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Manifest fails the test unless the content of file is what the program prints
// with --print-manifest and these options. program is a main package in the form
// that go build accepts, such as "." for the package in the directory of the test.
//
// The test has no list of checks of its own: the manifest covers the checks that
// the main function passes to [preflight.Main], so a check that is run without
// its rules being granted fails the test. The go command must be in PATH, as it
// is under go test.
func Manifest(tb testing.TB, program, file string, options preflight.ManifestOptions) {
	tb.Helper()
	ctx, cancel := withDeadlineOf(tb)
	defer cancel()

	// Windows requires the suffix; other systems ignore it.
	binary := filepath.Join(tb.TempDir(), "preflight.exe")
	if _, err := output(ctx, "go", "build", "-o", binary, program); err != nil {
		tb.Fatalf("cannot build the program %s: %v", program, err)
	}
	manifest, err := output(ctx, binary, "--print-manifest",
		"--name="+options.Name, "--namespace="+options.Namespace, "--image="+options.Image)
	if err != nil {
		tb.Fatalf("cannot print the manifest of the program %s: %v", program, err)
	}
	compare(tb, file, manifest)
}

// output runs a command and returns its standard output. The error contains its
// standard error.
func output(ctx context.Context, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...) //nolint:gosec // The caller is a test and names its own program.
	stdout, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(exit.Stderr))
	}
	return stdout, err
}
