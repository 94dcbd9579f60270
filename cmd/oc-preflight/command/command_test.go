package command_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/test/golden"
	"github.com/openshift/update-preflight/test/release"
)

// The scripts show command, output and exit code of everything that needs no
// cluster; test/e2e has those that do.
func TestMain(m *testing.M) {
	run := func() {
		streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
		os.Exit(command.Execute(context.Background(), os.Args, streams))
	}
	commands := map[string]func(){}
	for _, name := range []string{
		"oc-preflight", "kubectl-preflight", "kubectl-preflight.exe", "preflight", "oc_complete-preflight", "kubectl_complete-preflight",
	} {
		commands[name] = run
	}
	testscript.Main(m, commands)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", Setup: setup, RequireExplicitExec: true, UpdateScripts: golden.Update(),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "requested": requested},
	})
}

// exits runs a command and compares its exit code: exits CODE COMMAND ARG...
func exits(script *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		script.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	err := script.Exec(args[1], args[2:]...)
	got := "exit status 0"
	if err != nil {
		got = err.Error()
	}
	if want := "exit status " + args[0]; got != want {
		script.Fatalf("%s: %s, want %s", strings.Join(args[1:], " "), got, want)
	}
}

const (
	repository = "quay.io/openshift-release-dev/ocp-release"
	signed     = repository + "@sha256:1111111111111111111111111111111111111111111111111111111111111111"
	unsigned   = repository + "@sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

// setup gives each script a release that is signed, the key, another key, and the path of the
// example archive.
func setup(env *testscript.Env) error {
	for _, name := range []string{"release", "other"} {
		signer, err := release.NewSigner(name + " key")
		if err != nil {
			return err
		}
		key, err := signer.PublicKey()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(env.WorkDir, name+".asc"), key, 0o600); err != nil {
			return err
		}
		if name == "other" {
			continue
		}
		signature, err := signer.Sign(signed, repository+":4.19.0-x86_64")
		if err != nil {
			return err
		}
		store := release.Store{}
		store.Add(signed, signature)
		if err := store.WriteDirectory(filepath.Join(env.WorkDir, "signatures")); err != nil {
			return err
		}
	}
	if err := signVerdicts(env); err != nil {
		return err
	}
	if err := startAttackers(env); err != nil {
		return err
	}
	archive, err := filepath.Abs("../../../examples/archive")
	if err != nil {
		return err
	}
	env.Setenv("ARCHIVE", archive)
	env.Setenv("SIGNED", signed)
	env.Setenv("UNSIGNED", unsigned)
	kubeconfig := filepath.Join(env.WorkDir, "kubeconfig")
	env.Setenv("KUBECONFIG", kubeconfig)
	return os.WriteFile(kubeconfig, []byte(unreachable), 0o600)
}

// unreachable is a kubeconfig of a cluster whose API server does not listen.
const unreachable = `{apiVersion: v1, kind: Config, current-context: c,
 clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}]}
`
