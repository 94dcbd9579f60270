package registry

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
)

// failure is the error when no place had the image. A missing credential comes
// first, then places that could not be reached: the image may be there.
func (a *Access) failure(pullSpec string, attempts []attempt) *Error {
	var texts []string
	by := map[finding.Reason]attempt{}
	for _, each := range attempts {
		texts = append(texts, each.String())
		if reason := each.reason(); by[reason].place.Repository == "" {
			by[reason] = each
		}
	}
	failure := &Error{Message: strings.Join(texts, "; ")}
	for _, reason := range []finding.Reason{
		ReasonRegistryUnauthorized, ReasonCredentialHelperFailed, ReasonRegistryUntrusted, ReasonRegistryUnreachable,
		ReasonRegistryRateLimited, ReasonRegistryError, ReasonImageNotFound, ReasonRegistryBlocked,
	} {
		first, ok := by[reason]
		if !ok {
			continue
		}
		failure.Reason = reason
		failure.Remediation, failure.Actions = a.remedy(reason, pullSpec, first)
		return failure
	}
	return failure
}

func (a *Access) remedy(reason finding.Reason, pullSpec string, first attempt) (string, []finding.Action) {
	host, _, _ := strings.Cut(first.place.Repository, "/")
	switch reason { //nolint:exhaustive // the other reasons have the last remedy
	case ReasonRegistryUnauthorized:
		return a.accountRemedy(host, first.credential)
	case ReasonCredentialHelperFailed:
		return "Fix the credential helper, or log in without it.", []finding.Action{finding.Run(login, host)}
	case ReasonRegistryUntrusted:
		return fmt.Sprintf("Add the CA of the registry as key %q to a ConfigMap in openshift-config, and name that ConfigMap in spec.additionalTrustedCA.",
			strings.Replace(host, ":", "..", 1)), []finding.Action{finding.Run(editImageConfig)}
	case ReasonRegistryUnreachable:
		return fmt.Sprintf("Make %s reachable from here, with the right proxy and CA, then run the preflight again.", host), nil
	case ReasonRegistryRateLimited:
		return "Wait as long as the registry requests, or log in with an account that has a higher limit.", []finding.Action{finding.Run(login, host)}
	case ReasonRegistryError:
		return fmt.Sprintf("Run the preflight again; if the error persists, ask the operators of %s.", host), nil
	case ReasonImageNotFound:
		return "Check the pull spec; on a mirror, mirror the release.", []finding.Action{finding.Run(mirrorRelease)}
	}
	return fmt.Sprintf("Mirror the image %s to a registry that the cluster may pull from, or allow its registry.", oneLine(pullSpec)),
		[]finding.Action{finding.Run(editImageConfig)}
}

// accountRemedy depends on which credential was rejected.
func (a *Access) accountRemedy(host string, rejected credential) (string, []finding.Action) {
	renew, again := finding.Run(setPullSecret), finding.Run(login, host)
	if rejected.store.cluster {
		return "Renew the entry of the cluster's pull secret; nodes are rejected too.", []finding.Action{renew}
	}
	for _, warning := range a.warnings {
		if warning.Reason == string(ReasonPullSecretUnreadable) {
			return "Obtain the permission to read the cluster's pull secret, or log in with an account that may pull the image. Without the pull secret: " +
				warning.Message + ".", []finding.Action{again}
		}
	}
	if rejected.key == "" {
		return "Log in with an account that may pull the image, and add an entry to the cluster's pull secret for the nodes.", []finding.Action{again, renew}
	}
	return "Log in with an account that may pull the image.", []finding.Action{again}
}
