package running_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/cmd/oc-preflight/cli"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/running"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/test/release"
)

// A recorded result is used for the question that it answers: each flag that changes the answer changes what the
// run covers, unless what it changes is decided for each user anew.
func TestFlagsOfARunAreWhatItCovers(t *testing.T) {
	anew := []string{
		"accept", "accept-file", // each user judges by their own acceptances
		"parallelism", // a check that had no time is inconclusive, and such a result is not used again
		"rerun",       // it excludes all earlier results
	}
	signer, err := release.NewSigner("test")
	if err != nil {
		t.Fatal(err)
	}
	key, err := signer.PublicKey()
	keyring, checks := filepath.Join(t.TempDir(), "key.asc"), t.TempDir()
	if err := errors.Join(err, os.WriteFile(keyring, key, 0o600),
		os.WriteFile(filepath.Join(checks, "job.yaml"), []byte("kind: Job"), 0o600)); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{
		"keyring": keyring, "signature-store": t.TempDir(), "checks": checks, "since": "3h", "images": "off", "no-jobs": "true",
		"rehearse": "guarded", "dependency": "https://registry.example.com",
	}
	plain := coverage(t, "")
	flags := map[string]*pflag.Flag{}
	command(&running.RunOptions{}).Flags().VisitAll(func(flag *pflag.Flag) { flags[flag.Name] = flag })
	if coverage(t, "https://prometheus.example.com") == plain {
		t.Error("--prometheus changes the answer, and not what a run covers")
	}
	for _, name := range anew {
		if flags[name] == nil {
			t.Errorf("--%s does not exist", name)
		}
	}
	for name, flag := range flags {
		if !option.Of(flag).Effect.ChangesAnswer() || slices.Contains(anew, name) {
			continue
		}
		value := values[name]
		if value == "" {
			value = "other"
		}
		if coverage(t, "", "--"+name+"="+value) == plain {
			t.Errorf("--%s changes the answer, and not what a run covers", name)
		}
	}
}

// command has the flags of a run.
func command(flags *running.RunOptions) *cobra.Command {
	c := &cobra.Command{Use: "run"}
	flags.AddForFleet(c)
	return c
}

// coverage is what a run with that Prometheus and these arguments covers.
func coverage(t *testing.T, prometheus string, args ...string) string {
	t.Helper()
	var flags running.RunOptions
	flags.Judge.Prometheus = prometheus
	c := command(&flags)
	client := cli.New(c.Flags(), genericiooptions.NewTestIOStreamsDiscard())
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	reached, err := cluster.Connect(&rest.Config{Host: "https://cluster.example.com"}, "test")
	if err != nil {
		t.Fatal(err)
	}
	options, err := flags.Options(t.Context(), client, reached)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return options.Coverage()
}
