package e2e_test

import (
	"crypto/elliptic"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// The scripts show the commands of an administrator and their output. They share a
// cluster with one release, whose check fails, and one gate that is closed.
func TestScripts(t *testing.T) {
	w := publish(t, map[string]animal{"ill": {Ending: "fail"}})
	w.State.Gates = map[string]string{"ack-5.1-zoo": "Feed all animals, see https://example.com/feeding."}
	w.Apply(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(testCluster.Program(t))+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("KUBECONFIG", local.Kubeconfig)
			env.Setenv("RELEASE", w.PullSpec)
			env.Setenv("PROMETHEUS", testCluster.Monitoring)
			return writeKeys(env.WorkDir)
		},
	})
}

// writeKeys writes the keys with which a script signs and verifies verdicts.
func writeKeys(directory string) error {
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), nil)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(directory, "preflight.key"), private, 0o600),
		os.WriteFile(filepath.Join(directory, "preflight.pub"), public, 0o600),
	)
}

// exits runs a command and compares its exit code: exits CODE COMMAND ARG...
func exits(script *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		script.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	got := "exit status 0"
	if err := script.Exec(args[1], args[2:]...); err != nil {
		got = err.Error()
	}
	if want := "exit status " + args[0]; got != want {
		script.Fatalf("%s: %s, want %s", strings.Join(args[1:], " "), got, want)
	}
}
