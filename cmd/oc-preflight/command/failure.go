package command

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/cmd/oc-preflight/exitcode"
	"github.com/openshift/update-preflight/cmd/oc-preflight/phrase"
	"github.com/openshift/update-preflight/collector/access"
)

// withRemedies explains the errors that every verb may return.
func withRemedies(verb *cobra.Command) {
	for _, each := range verb.Commands() {
		withRemedies(each)
	}
	run := verb.RunE
	if run == nil {
		return
	}
	verb.RunE = func(c *cobra.Command, args []string) error { return explained(c, run(c, args)) }
}

// explained puts what to do before an error about permissions or the connection, the same
// for all verbs.
func explained(c *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	if exit, ok := errors.AsType[*exitcode.Error](err); ok && exit.Code != exitcode.Failed {
		return err
	}
	_, missing := errors.AsType[*access.MissingError](err)
	unreached, unreachable := errors.AsType[*url.Error](err)
	switch {
	case missing, apierrors.IsForbidden(err) && strings.Contains(err.Error(), `is forbidden: User "`): // not of admission
		return fmt.Errorf("have an administrator apply the roles that this prints: %s; %w", authCommand(c), err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server rejects the credentials, which may have expired; log in again with \"oc login\": %w", err)
	case unreachable && !strings.Contains(err.Error(), "could not reach the API server") && isAPI(unreached.URL):
		return fmt.Errorf("could not reach the API server; check the network, and the cluster that --kubeconfig and --context select: %w", err)
	}
	return err
}

// isAPI is true for a request to an API server, and not to a registry or an update service.
func isAPI(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && (strings.HasPrefix(parsed.Path, "/api/") || strings.HasPrefix(parsed.Path, "/apis/") || parsed.Path == "/version")
}

// authCommand is the command that prints the roles for a verb and its request.
func authCommand(c *cobra.Command) string {
	verb, words := c.Name(), ""
	if of := "fleet-" + verb; c.HasParent() && c.Parent().Name() == fleetName && slices.Contains(hubCommands(), of) {
		verb = of
	}
	if !slices.Contains(commandNames(), verb) {
		verb = "run" // attach needs what run needs
	}
	request := phrase.Of(c)
	flags := request.Given.Global()
	repeated := []string{"to", "to-image", "to-latest", "images", "checks"}
	if c.HasParent() && c.Parent().Name() == fleetName {
		repeated = []string{"hive", "hosted"}
	} else if verb != "run" {
		repeated = nil
	}
	for _, name := range repeated {
		flag := c.Flags().Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		words += phrase.Flags{{Name: name, Values: phrase.ValuesOf(flag)}}.String()
	}
	return request.Verb("auth", verb+words, flags)
}
