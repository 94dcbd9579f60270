package commands_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/test/program"
)

// Each command that a report, an error or a hint prints is about the cluster that the request named, and none of them
// removes anything. The kubeconfig has another cluster as the current one: a command without the flags goes there.
func TestPrintedCommandsReachTheCluster(t *testing.T) {
	e := newBlockedEnvironment(t)
	selectAnotherCluster(t, e.plane.Kubeconfig)
	given := []string{"--context", "named", "--as", "admin", "--as-group", "system:masters"}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		// least is the number of commands that are printed at least.
		least int
	}{
		"Targets": {reason: "each finding has commands", args: []string{"targets", "--prometheus", e.monitoring}, least: 5},
		"Target":  {reason: "each finding has commands", args: []string{"targets", "--to", "4.19.1", "--prometheus", e.monitoring}, least: 3},
		"Clear": {
			reason: "the run and the update follow", args: []string{"targets", "--to", "4.18.18", "--prometheus", e.monitoring},
			least: 2,
		},
		"Run": {
			reason: "a run ends with what to do next",
			args:   []string{"run", "--to", "4.19.1", "--no-jobs", "--prometheus", e.monitoring}, least: 4,
		},
		"Plan": {
			reason: "the first update has the gates",
			args:   []string{"plan", "--to", "4.19.1", "--no-cache", "--prometheus", e.monitoring},
		},
		"Drains": {reason: "a drain that does not end has commands", args: []string{"drain-plan"}},
		"Unread": {
			reason: "the monitoring cannot be read", args: []string{"targets", "--to", "4.18.18", "--prometheus", "http://127.0.0.1:1"},
			least: 1,
		},
		"NoRun":    {reason: "a run is to be started", args: []string{"status"}, least: 1},
		"NoTarget": {reason: "a run of the target is to be started", args: []string{"status", "--to", "4.18.18"}, least: 1},
		"NoAttach": {reason: "the newest run is to be shown", args: []string{"attach"}, least: 1},
		"NoDiff":   {reason: "the runs are to be listed", args: []string{"diff"}, least: 1},
		"OtherRun": {reason: "the runs are to be listed", args: []string{"cancel", "3b6f2c1e"}, least: 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := program.Call(t, slices.Concat(tc.args, given)...)
			printed := printedIn(got.Stdout + "\n" + got.Stderr)
			if len(printed) < tc.least {
				t.Errorf("%s: %d commands are printed, want at least %d:\n%s%s", tc.reason, len(printed), tc.least, got.Stdout, got.Stderr)
			}
			slices.Sort(printed)
			for _, line := range slices.Compact(printed) {
				for _, call := range typed(t, line) {
					if err := reaches(call, tc.args); err != nil {
						t.Errorf("%s: %s: %v", tc.reason, line, err)
					}
				}
			}
		})
	}
}

// selectAnotherCluster has the program use a kubeconfig whose context "named" is the cluster of another kubeconfig, and
// whose current one is a cluster that does not exist.
func selectAnotherCluster(t *testing.T, kubeconfig string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts = map[string]*clientcmdapi.Context{"named": config.Contexts[config.CurrentContext], "elsewhere": {Cluster: "elsewhere"}}
	config.Clusters["elsewhere"] = &clientcmdapi.Cluster{Server: "http://127.0.0.1:1"}
	config.CurrentContext = "elsewhere"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}

// shown matches what is printed to be typed: after a prompt, or in an error or a hint.
var shown = regexp.MustCompile(`(?m)\$ (oc .+)$|: (oc preflight [^;\n]+)`)

func printedIn(output string) []string {
	var lines []string
	for _, match := range shown.FindAllStringSubmatch(output, -1) {
		lines = append(lines, strings.TrimSpace(match[1]+match[2]))
	}
	return lines
}

// typed is a command line as a shell separates it: the arguments of each call of oc.
func typed(t *testing.T, line string) [][]string {
	t.Helper()
	directory := t.TempDir()
	calls := filepath.Join(directory, "calls")
	const stub = "#!/bin/sh\nprintf '%s\\037' \"$@\" >> \"$CALLS\"; echo >> \"$CALLS\"\n"
	if err := os.WriteFile(filepath.Join(directory, "oc"), []byte(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", line)
	shell.Dir, shell.Env = directory, []string{"PATH=" + directory + ":/usr/bin:/bin", "CALLS=" + calls}
	if output, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, output)
	}
	recorded, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for each := range strings.Lines(string(recorded)) {
		all = append(all, strings.Split(strings.TrimSuffix(strings.TrimRight(each, "\n"), "\x1f"), "\x1f"))
	}
	return all
}

// reaches returns why a call of oc is not about the named cluster, or removes something.
func reaches(call, asked []string) error {
	if call[0] != "preflight" {
		if !slices.Equal(call[:6], []string{"--as", "admin", "--as-group", "system:masters", "--context", "named"}) {
			return fmt.Errorf("oc is called with %q first, want the connection of the request", call[:min(6, len(call))])
		}
		return harmless(call[6:])
	}
	root := command.New("oc preflight", genericiooptions.NewTestIOStreamsDiscard())
	verb, rest, err := root.Find(call[1:])
	if err != nil {
		return err
	}
	if err := verb.ParseFlags(rest); err != nil {
		return err
	}
	if slices.Contains([]string{"auth", "explain"}, verb.Name()) {
		return nil // the one is for another user, the other needs no cluster
	}
	wanted := map[string]string{"context": "named", "as": "admin", "as-group": "[system:masters]"}
	if at := slices.Index(asked, "--prometheus"); at >= 0 && verb.Flags().Lookup("prometheus") != nil {
		wanted["prometheus"] = asked[at+1]
	}
	for name, value := range wanted {
		if got := verb.Flags().Lookup(name).Value.String(); got != value {
			return fmt.Errorf("--%s is %q, want %q", name, got, value)
		}
	}
	if slices.Contains([]string{"cleanup", "collect"}, verb.Name()) || verb.Flags().Changed("force") {
		return fmt.Errorf("%s removes something, or forces", verb.Name())
	}
	return nil
}

// harmless returns why a call of oc without the flags of its connection may destroy something: its verb reads, or
// changes what the finding names.
func harmless(call []string) error {
	rest := call
	for len(rest) > 1 && strings.HasPrefix(rest[0], "-") {
		rest = rest[2:]
	}
	words := strings.Join(rest[:min(2, len(rest))], " ")
	allowed := []string{"get", "describe", "wait", "patch configmap", "patch machineconfigpool", "adm upgrade", "api-resources"}
	if !slices.ContainsFunc(allowed, func(verb string) bool { return words == verb || strings.HasPrefix(words, verb+" ") }) {
		return fmt.Errorf("%q is not among %q", words, allowed)
	}
	if strings.Contains(strings.Join(rest, " "), "--force") || slices.Equal(rest, []string{"adm", "upgrade", "channel"}) {
		return fmt.Errorf("%q forces, or removes the channel", rest)
	}
	return nil
}
