package command_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
	"github.com/openshift/update-preflight/cmd/oc-preflight/flagset"
)

// optionsOf returns the options that a command has by its arguments, without running it.
func optionsOf(t *testing.T, args ...string) map[string]string {
	t.Helper()
	var found any
	ctx := flagset.Observed(t.Context(), func(options any) { found = options })
	streams, _, _, stderr := genericiooptions.NewTestIOStreams()
	if code := command.Execute(ctx, append([]string{"/usr/local/bin/oc-preflight"}, args...), streams); code != 0 || found == nil {
		t.Fatalf("%q: exit code %d, options %v\n%s", args, code, found, stderr)
	}
	return fieldsOf(found)
}

// fieldsOf are the exported fields of options by their path, without those that are empty.
func fieldsOf(options any) map[string]string {
	fields := map[string]string{}
	var visit func(path string, value reflect.Value)
	visit = func(path string, value reflect.Value) {
		for value.Kind() == reflect.Pointer && !value.IsNil() {
			value = value.Elem()
		}
		switch {
		case value.Kind() == reflect.Map:
			for _, key := range value.MapKeys() {
				visit(path+"."+key.String(), value.MapIndex(key))
			}
		case value.Kind() == reflect.Struct:
			for i := range value.NumField() {
				if field := value.Type().Field(i); field.IsExported() {
					visit(strings.TrimPrefix(path+"."+field.Name, "."), value.Field(i))
				}
			}
		case !value.IsZero() && (value.Kind() != reflect.Slice || value.Len() > 0):
			fields[path] = fmt.Sprint(value.Interface())
		}
	}
	visit("", reflect.ValueOf(options))
	return fields
}

// Arguments become these options, beside the defaults of the command.
func TestArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   map[string]string
	}{
		"Run": {
			reason: "the target and the acceptances", args: []string{"run", "--to", "4.19.3", "--accept", "RiskA,RiskB", "--accept-file", "a.yaml"},
			want: map[string]string{
				"Source.Target.Release.Version": "4.19.3", "Judge.Accepted.Accept": "[RiskA RiskB]", "Judge.Accepted.AcceptFiles": "[a.yaml]",
			},
		},
		"UpdateName": {
			reason: "a name as \"-o name\" writes it is a version", args: []string{"run", "--to", "update/4.19.3"},
			want: map[string]string{"Source.Target.Release.Version": "4.19.3"},
		},
		"Path": {
			reason: "hops keep their order", args: []string{"run", "--hop", "4.18.9", "--hop", "4.19.3", "--channel", "eus-4.18,eus-4.20"},
			want: map[string]string{"Route.Hops": "[4.18.9 4.19.3]", "Route.Graph.Channels": "[eus-4.18 eus-4.20]"},
		},
		"Rehearse": {
			reason: "without a value it is guarded", args: []string{"run", "--to-latest", "--rehearse"},
			want: map[string]string{"Source.Target.Release.Latest": "true", "Source.Rehearse": "guarded"},
		},
		"Unguarded": {
			reason: "a value follows =", args: []string{"targets", "--rehearse=unguarded"}, want: map[string]string{"Rehearse": "unguarded"},
		},
		"DryRun": {
			reason: "client and server are the same", args: []string{"ack", "gate", "--dry-run=client"},
			want: map[string]string{"Gate": "gate", "DryRun": "[All]"},
		},
		"NoDryRun": {reason: "none is none", args: []string{"ack", "gate", "--dry-run=none"}, want: map[string]string{"Gate": "gate"}},
		"Signed": {
			reason: "the key and the file", args: []string{"run", "--to-latest", "--sign", "cosign.key", "--signed-verdict", "v.json"},
			want: map[string]string{"Source.Target.Release.Latest": "true", "Signing.Key": "cosign.key", "Signing.Path": "v.json"},
		},
		"Attach": {reason: "the run", args: []string{"attach", "3b6f2c1e"}, want: map[string]string{"Run": "3b6f2c1e"}},
		"Logs": {
			reason: "the check comes last", args: []string{"logs", "3b6f2c1e", "Etcd.Quorum", "-f"},
			want: map[string]string{"Run": "3b6f2c1e", "Check": "Etcd.Quorum", "Follow": "true"},
		},
		"NewestLogs": {
			reason: "one argument is the check", args: []string{"logs", "Etcd.Quorum"},
			want: map[string]string{"Check": "Etcd.Quorum"},
		},
		"Status": {
			reason: "the hosted cluster and its pools", args: []string{"status", "--hosted-cluster", "a/b", "--nodepool", "c", "--nodepool", "d"},
			want: map[string]string{"Hosted.Cluster": "a/b", "Hosted.Pools": "[c d]"},
		},
		"Watch": {
			reason: "by its short name", args: []string{"after", "3b6f2c1e", "-w", "--interval", "30s"},
			want: map[string]string{"Run": "3b6f2c1e", "Watching.Watch": "true", "Watching.Interval": "30s"},
		},
		"Plan": {
			reason: "without a cluster", args: []string{"plan", "--from", "4.16.27", "--to", "4.18.17", "--graph", "g.json", "-o", "imageset"},
			want: map[string]string{"From": "4.16.27", "Target.Version": "4.18.17", "Graph.Graphs": "[g.json]", "Output.Format": "imageset"},
		},
		"Diff":    {reason: "two runs, in their order", args: []string{"diff", "a", "b"}, want: map[string]string{"Runs": "[a b]"}},
		"Cleanup": {reason: "all runs", args: []string{"cleanup", "--all"}, want: map[string]string{"All": "true"}},
		"Auth": {
			reason: "a fleet's clusters", args: []string{"auth", "run", "--hive", "--bind", "user:a"},
			want: map[string]string{"Commands": "[run]", "Members.hive": "true", "Bind": "[user:a]"},
		},
		"Fleet": {
			reason: "members and results", args: []string{"fleet", "targets", "--contexts", "prod-*", "--results", "r", "--to", "4.19.3"},
			want: map[string]string{"Request.Members.Contexts": "[prod-*]", "Request.Results.Path": "r", "To": "4.19.3"},
		},
		"Gate": {
			reason: "a wave of a hub", args: []string{"fleet", "gate", "--to", "4.19.3", "--placement", "a/b", "--wave", "w", "--max-failed", "5%"},
			want: map[string]string{"Selection.To": "4.19.3", "Selection.Placement": "a/b", "Selection.Wave": "w", "MaxFailed": "5%"},
		},
		"Conformance": {
			reason: "the subject and its images", args: []string{"conformance", "manifests/", "--image", "a=b@c"},
			want: map[string]string{"Subject": "manifests/", "Images": "[a=b@c]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := optionsOf(t, tc.args...)
			defaults := defaultsOf(t, tc.args)
			maps.DeleteFunc(got, func(path, value string) bool { return defaults[path] == value })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// defaultsOf are the options of the verb of a command line without its flags and arguments.
func defaultsOf(t *testing.T, args []string) map[string]string {
	t.Helper()
	root := command.New("oc preflight", genericiooptions.NewTestIOStreamsDiscard())
	verb, _, err := root.Find(args)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, verb)
}

// parsed are the options of a verb with these flags, without the requirements on its arguments.
func parsed(t *testing.T, verb *cobra.Command, flags ...string) map[string]string {
	t.Helper()
	if err := verb.ParseFlags(flags); err != nil {
		t.Fatalf("%s %q: %v", verb.CommandPath(), flags, err)
	}
	var found any
	verb.SetContext(flagset.Observed(context.WithoutCancel(t.Context()), func(options any) { found = options }))
	if err := verb.RunE(verb, nil); err != nil {
		t.Fatalf("%s %q: %v", verb.CommandPath(), flags, err)
	}
	return fieldsOf(found)
}

// Every flag of a command changes its options: none is declared and read by nothing.
func TestEveryFlagIsAnOption(t *testing.T) {
	tree := func() map[string]*cobra.Command {
		verbs := map[string]*cobra.Command{}
		var visit func(c *cobra.Command)
		visit = func(c *cobra.Command) {
			for _, each := range c.Commands() {
				visit(each)
			}
			// Commands of cobra, and those without a subject, have no options.
			if name := c.CommandPath(); !c.HasSubCommands() && !strings.Contains(name, "completion") && c.Name() != "help" && c.Name() != "options" {
				verbs[name] = c
			}
		}
		visit(command.New("oc preflight", genericiooptions.NewTestIOStreamsDiscard()))
		return verbs
	}
	ofConnection := []string{"help", "archive", "quiet"} // of the client: how a cluster is reached, and what is shown meanwhile
	for _, name := range slices.Sorted(maps.Keys(tree())) {
		defaults := parsed(t, tree()[name])
		tree()[name].LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			if slices.Contains(ofConnection, flag.Name) {
				return
			}
			value := map[string]string{"bool": "true", "int": "7", "duration": "7s"}[flag.Value.Type()]
			if value == flag.DefValue {
				value = "false"
			}
			if value == "" {
				value = "server" // any text, and a value of --dry-run
			}
			if got := parsed(t, tree()[name], "--"+flag.Name+"="+value); cmp.Equal(got, defaults) {
				t.Errorf("%s --%s=%s has the options of %[1]s", name, flag.Name, value)
			}
		})
	}
}
