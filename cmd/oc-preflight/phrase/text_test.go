package phrase_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/collector/finding"
)

// A command that an error prints goes to the cluster of the request, by the name of the program.
func TestRemedy(t *testing.T) {
	follow, end := finding.Read("oc preflight attach %s", "3b6f"), finding.Delete("oc preflight cancel %s", "3b6f")
	for name, tc := range map[string]struct {
		reason   string
		program  string
		given    []string
		sentence string
		commands []finding.Action
		want     []string
	}{
		"Context": {
			reason: "without its context the command is about another cluster", given: []string{"history", "--context", "prod", "--as", "admin"},
			sentence: "Follow the run, or end it.", commands: []finding.Action{follow, end},
			want: []string{
				"Follow the run, or end it.", "  oc preflight attach 3b6f --as admin --context prod",
				"  oc preflight cancel 3b6f --as admin --context prod",
			},
		},
		"Hosted": {
			reason: "the record of the run is in the guest", given: []string{"cleanup", "--all", "--hosted-cluster", "clusters/a"},
			sentence: "End it", commands: []finding.Action{end}, want: []string{"End it: oc preflight cancel 3b6f --hosted-cluster clusters/a"},
		},
		"Monitoring": {
			reason:   "attach asks for all that a record does not have",
			given:    []string{"run", "--to-latest", "--prometheus", "http://a", "--keyring", "k.asc", "--rerun", "--redact-baseline"},
			sentence: "Follow it", commands: []finding.Action{follow},
			want: []string{"Follow it: oc preflight attach 3b6f --keyring k.asc --prometheus http://a --redact-baseline"},
		},
		"NoSuchFlag": {
			reason: "cancel has no such flag", given: []string{"run", "--to-latest", "--prometheus", "http://a"},
			sentence: "End it", commands: []finding.Action{end}, want: []string{"End it: oc preflight cancel 3b6f"},
		},
		"Kubectl": {
			reason: "this is what the user types", program: "kubectl preflight", given: []string{"history"},
			sentence: "List the runs", commands: []finding.Action{finding.Read("oc preflight history")},
			want: []string{"List the runs: kubectl preflight history"},
		},
		"Unconnected": {
			reason: "explain needs no cluster", given: []string{"status", "--context", "prod"},
			sentence: "Read", commands: []finding.Action{finding.Read("oc preflight explain AdminAckRequired")},
			want: []string{"Read: oc preflight explain AdminAckRequired"},
		},
		"Complete": {
			reason: "no flag twice", given: []string{"status", "--context", "prod"},
			sentence: "Run", commands: []finding.Action{finding.Read("oc preflight run --to 4.19.1 --context prod")},
			want: []string{"Run: oc preflight run --to 4.19.1 --context prod"},
		},
		"Archive": {
			reason: "the cluster of an archive is not the one that is connected", given: []string{"status", "--archive", "a"},
			sentence: "End it", commands: []finding.Action{end},
			want: []string{"End it: On the cluster of the archive only: `oc preflight cancel 3b6f`"},
		},
		"Token": {
			reason: "a credential is printed nowhere", given: []string{"history", "--token", "secret"},
			sentence: "Follow it", commands: []finding.Action{follow},
			want: []string{"Follow it: With the token of this request as --token: `oc preflight attach 3b6f`"},
		},
		"NotShown": {
			reason: "a run is no flag", given: []string{"history"},
			sentence: "Read its report", commands: []finding.Action{finding.Read("oc preflight status %s", "--all")},
			want: []string{"Read its report"},
		},
		"NoCommand": {reason: "the sentence is all", given: []string{"history"}, sentence: "Name a channel.", want: []string{"Name a channel."}},
		"Nothing":   {reason: "an error need not have a remedy", given: []string{"history"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := requested(t, tc.program, tc.given...).Remedy(tc.sentence, tc.commands); !slices.Equal(got, tc.want) {
				t.Errorf("%s:\n%q, want\n%q", tc.reason, got, tc.want)
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
			reason:  "an acknowledgement in another cluster has no effect, or the wrong one",
			given:   []string{"run", "--to-latest", "--context", "prod", "--kubeconfig", "a b"},
			command: "oc -n openshift-config patch configmap admin-acks",
			want:    "oc --context prod --kubeconfig 'a b' -n openshift-config patch configmap admin-acks",
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
			command: "oc get nodes -o name | xargs -n1 oc describe | grep x",
			want:    "oc --context prod get nodes -o name | xargs -n1 oc --context prod describe | grep x",
		},
		"Archive": {
			reason: "the cluster of an archive has no connection", given: []string{"targets", "--archive", "a", "--context", "prod"},
			command: "oc get nodes", want: "oc get nodes",
		},
		"Guest": {
			reason:  "the connection of the request is that of the management cluster",
			given:   []string{"targets", "--hosted-cluster", "clusters/a", "--context", "prod"},
			command: "oc get nodes", want: "oc get nodes", about: finding.Guest,
		},
		"HostedPlugin": {
			reason:  "this program reaches both clusters by the connection of the management cluster",
			given:   []string{"run", "--to-latest", "--hosted-cluster", "clusters/a", "--context", "prod"},
			command: "oc preflight auth run --hosted-cluster clusters/a", want: "oc preflight auth run --hosted-cluster clusters/a",
		},
		"GuestKubeconfig": {
			reason:  "the kubeconfig of the guest is known",
			given:   []string{"targets", "--hosted-cluster", "clusters/a", "--context", "prod", "--guest-kubeconfig", "guest"},
			command: "oc get nodes", want: "oc --kubeconfig guest get nodes", about: finding.Guest,
		},
		"Management": {
			reason:  "the NodePool is in the cluster of the connection",
			given:   []string{"targets", "--hosted-cluster", "clusters/a", "--context", "prod", "--guest-kubeconfig", "guest"},
			cluster: finding.Management, command: "oc -n clusters get nodepool a", want: "oc --context prod -n clusters get nodepool a",
			about: finding.Management,
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
