package command_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/openshift/update-preflight/cmd/oc-preflight/command"
)

// hang is the time after which a verb counts as hanging: it is several times what is promised, for busy machines.
const hang = 8 * time.Second

// calls are calls of all verbs, by their paths: their examples, and without arguments.
func calls() map[string][][]string {
	all := map[string][][]string{}
	var add func(verb *cobra.Command)
	add = func(verb *cobra.Command) {
		if verb.Runnable() && verb.HasParent() {
			name := strings.TrimPrefix(verb.CommandPath(), verb.Root().CommandPath()+" ")
			all[name] = append(all[name], strings.Fields(name))
			text := strings.ReplaceAll(verb.Example, "\\\n", " ")
			for line := range strings.Lines(text) {
				words := strings.FieldsFunc(strings.TrimSpace(line), func(r rune) bool { return r == ' ' || r == '"' || r == '\'' })
				end := slices.IndexFunc(words, func(word string) bool { return strings.ContainsAny(word, "|>;&$<") })
				if end >= 0 {
					words = words[:end]
				}
				if len(words) > 2 && strings.Contains(words[1], "preflight") && strings.HasPrefix(strings.Join(words[2:], " "), name) {
					all[name] = append(all[name], words[2:])
				}
			}
		}
		for _, each := range verb.Commands() {
			add(each)
		}
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	add(command.New("oc preflight", streams))
	return all
}

// call is a call of the program in progress.
type call struct {
	interrupt context.CancelFunc
	ended     chan string
}

func start(t *testing.T, server string, args []string) call {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	made := call{interrupt: interrupt, ended: make(chan string, 1)}
	config := writeKubeconfig(t, server)
	t.Setenv("KUBECONFIG", config)
	t.Chdir(t.TempDir())
	go func() {
		var out bytes.Buffer
		command.Execute(ctx, append([]string{"oc-preflight"}, args...), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
		made.ended <- out.String()
	}()
	return made
}

// silent starts an API server that accepts connections and does not answer, and returns its URL; the channel receives
// a value for each connection.
func silent(t *testing.T) (string, <-chan struct{}) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connected, ended := make(chan struct{}, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = connection.Close() }()
			connected <- struct{}{}
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-ended
	})
	return "http://" + listener.Addr().String(), connected
}

// TestSilentServer has an API server that does not answer: the first signal ends every verb.
func TestSilentServer(t *testing.T) {
	reached := map[string]bool{}
	for verb, all := range calls() {
		for _, args := range all {
			t.Run(filepath.Join(args...), func(t *testing.T) {
				server, connected := silent(t)
				call := start(t, server, args)
				defer call.interrupt()
				select {
				case <-connected:
					reached[verb] = true
				case <-call.ended:
					return // without the cluster
				case <-time.After(2 * hang):
					t.Error("it neither asks the API server nor ends")
				}
				call.interrupt()
				select {
				case <-call.ended:
				case <-time.After(hang):
					t.Error("the first signal does not end it")
				}
			})
		}
	}
	if len(reached) < 20 {
		t.Errorf("%v ask an API server; the examples of more do", reached)
	}
}

// TestNoServer has the address of an API server at which nothing listens: no verb repeats its first request.
func TestNoServer(t *testing.T) {
	for _, all := range calls() {
		for _, args := range all {
			t.Run(filepath.Join(args...), func(t *testing.T) {
				call := start(t, "http://127.0.0.1:1", args)
				defer call.interrupt()
				select {
				case <-call.ended:
				case <-time.After(hang):
					t.Error("it waits for a server that is not there")
				}
			})
		}
	}
}
