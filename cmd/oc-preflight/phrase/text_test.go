package phrase_test

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/collector/finding"
)

// A command that an error or a hint prints goes to the cluster of the request, by the name of the program.
func TestText(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		program string
		given   []string
		text    string
		want    string
	}{
		"Context": {
			reason: "without its context the command is about another cluster", given: []string{"history", "--context", "prod", "--as", "admin"},
			text: "Follow the run: oc preflight attach 3b6f; or end it: oc preflight cancel 3b6f",
			want: "Follow the run: oc preflight attach --as admin --context prod 3b6f; or end it: oc preflight cancel --as admin --context prod 3b6f",
		},
		"Hosted": {
			reason: "the record of the run is in the guest", given: []string{"cleanup", "--all", "--hosted-cluster", "clusters/a"},
			text: "end it: oc preflight cancel 3b6f", want: "end it: oc preflight cancel --hosted-cluster clusters/a 3b6f",
		},
		"Monitoring": {
			reason: "cancel has no such flag, and attach asks for it", given: []string{"run", "--to-latest", "--prometheus", "http://a", "--keyring", "k.asc", "--rerun", "--redact-baseline"},
			text: "oc preflight cancel 1; oc preflight attach 1", want: "oc preflight cancel 1; oc preflight attach --keyring k.asc --prometheus http://a --redact-baseline 1",
		},
		"Kubectl": {
			reason: "this is what the user types", program: "kubectl preflight", given: []string{"history"},
			text: "List the runs: oc preflight history", want: "List the runs: kubectl preflight history",
		},
		"Help":        {reason: "help is about no cluster", given: []string{"status", "--context", "prod"}, text: `see "oc preflight status --help"`, want: `see "oc preflight status --help"`},
		"Unconnected": {reason: "explain needs no cluster", given: []string{"status", "--context", "prod"}, text: "oc preflight explain AdminAckRequired", want: "oc preflight explain AdminAckRequired"},
		"Complete":    {reason: "no flag twice", given: []string{"status", "--context", "prod"}, text: "oc preflight run --to 4.19.1 --context prod", want: "oc preflight run --to 4.19.1 --context prod"},
		"Prose":       {reason: "this is no command", given: []string{"status", "--context", "prod"}, text: "Versions of oc preflight and the cluster", want: "Versions of oc preflight and the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := requested(t, tc.program, tc.given...).Text(tc.text); got != tc.want {
				t.Errorf("%s:\n%s, want\n%s", tc.reason, got, tc.want)
			}
		})
	}
}

// A command of oc that a finding has goes to the cluster of the request.
func TestCommandsOfOC(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		given   []string
		cluster string
		command string
		want    string
		// about is the cluster that the command is shown to be about; empty where there is one.
		about string
	}{
		"Context": {
			reason: "an acknowledgement in another cluster has no effect, or the wrong one", given: []string{"run", "--to-latest", "--context", "prod", "--kubeconfig", "a b"},
			command: "oc -n openshift-config patch configmap admin-acks", want: "oc --context prod --kubeconfig 'a b' -n openshift-config patch configmap admin-acks",
		},
		"Plugin": {
			reason: "commands of this program have the flags, too", given: []string{"status", "--context", "prod"},
			command: "oc preflight status --to 4.19.1", want: "oc preflight status --to 4.19.1 --context prod",
		},
		"Directed": {
			reason: "a stored report has the flags already", given: []string{"status", "--context", "prod"},
			command: "oc --context old get nodes", want: "oc --context old get nodes",
		},
		"Pipe": {
			reason: "each call of oc has them, also the one that xargs makes", given: []string{"status", "--context", "prod"},
			command: "oc get nodes -o name | xargs -n1 oc describe | grep x", want: "oc --context prod get nodes -o name | xargs -n1 oc --context prod describe | grep x",
		},
		"Archive": {
			reason: "the cluster of an archive has no connection", given: []string{"targets", "--archive", "a", "--context", "prod"},
			command: "oc get nodes", want: "oc get nodes",
		},
		"Guest": {
			reason: "the connection of the request is that of the management cluster", given: []string{"targets", "--hosted-cluster", "clusters/a", "--context", "prod"},
			command: "oc get nodes", want: "oc get nodes", about: finding.Guest,
		},
		"HostedPlugin": {
			reason: "this program reaches both clusters by the connection of the management cluster", given: []string{"run", "--to-latest", "--hosted-cluster", "clusters/a", "--context", "prod"},
			command: "oc preflight auth run --hosted-cluster clusters/a", want: "oc preflight auth run --hosted-cluster clusters/a",
		},
		"GuestKubeconfig": {
			reason: "the kubeconfig of the guest is known", given: []string{"targets", "--hosted-cluster", "clusters/a", "--context", "prod", "--guest-kubeconfig", "guest"},
			command: "oc get nodes", want: "oc --kubeconfig guest get nodes", about: finding.Guest,
		},
		"Management": {
			reason: "the NodePool is in the cluster of the connection", given: []string{"targets", "--hosted-cluster", "clusters/a", "--context", "prod", "--guest-kubeconfig", "guest"},
			cluster: finding.Management, command: "oc -n clusters get nodepool a", want: "oc --context prod -n clusters get nodepool a", about: finding.Management,
		},
	} {
		t.Run(name, func(t *testing.T) {
			action := finding.Action{Type: finding.ActionRun, Operation: finding.Reads, Cluster: tc.cluster}
			for call := range strings.SplitSeq(tc.command, " | ") {
				action.Calls = append(action.Calls, strings.Fields(call))
			}
			found := finding.Finding{Actions: []finding.Action{action.Written()}}
			worded := requested(t, "", tc.given...).Findings([]finding.Finding{found})
			if got := worded[0].Actions[0]; got.Command != tc.want || got.Cluster != tc.about {
				t.Errorf("%s:\n%s about %q, want\n%s about %q", tc.reason, got.Command, got.Cluster, tc.want, tc.about)
			}
		})
	}
}

// requested words the commands of a request; program is the name of the program, by default that of the plugin of oc.
func requested(t *testing.T, program string, args ...string) phrase.Phrase {
	t.Helper()
	if program == "" {
		program = "oc preflight"
	}
	root := command.New(program, genericiooptions.NewTestIOStreamsDiscard())
	verb, rest, err := root.Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if err := verb.ParseFlags(rest); err != nil {
		t.Fatal(err)
	}
	return phrase.Of(verb)
}
