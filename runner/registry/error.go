package registry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openshift/update-preflight/collector/words"
)

// maxText bounds, in bytes, what of outside text is repeated of one answer:
// those of several mirrors have to fit into one message.
const maxText = 200

// Error says why an image could not be had from anywhere, in the terms of a
// finding. It never holds a credential.
type Error struct {
	// Reason is one CamelCase word, stable between releases of this tool.
	Reason string
	// Message is what each place answered, in one line.
	Message string
	// Remediation says what to do about it.
	Remediation string
	// Err is the cause below, nil when there is none or there are several.
	Err error
}

// Error returns message and cause in one line.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + oneLine(e.Err.Error())
}

// Unwrap returns the cause below.
func (e *Error) Unwrap() error { return e.Err }

// attempt is what came of asking one place as somebody. Without an error it was
// not asked, because it is closed.
type attempt struct {
	place      Place
	credential credential
	err        error
}

func (t attempt) String() string {
	switch {
	case t.err == nil:
		return t.place.String() + ": " + t.place.Closed
	case unauthorized(t.err):
		return fmt.Sprintf("%s: %s with %s", t.place, answer(t.err), t.credential)
	}
	return fmt.Sprintf("%s: %s", t.place, answer(t.err))
}

// elsewhere says whether the error means that the image cannot be had from this
// place, so that another may have it: a status that is an error, or a server
// that could not be talked to.
func elsewhere(err error) bool {
	_, status := errors.AsType[*transport.Error](err)
	_, request := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	_, helper := errors.AsType[*helperError](err)
	return status || request || network || helper || errors.Is(err, io.ErrUnexpectedEOF)
}

func unauthorized(err error) bool {
	code := status(err)
	return code == http.StatusUnauthorized || code == http.StatusForbidden
}

// status is the HTTP status that is the error, 0 when none is.
func status(err error) int {
	if refused, ok := errors.AsType[*transport.Error](err); ok {
		return refused.StatusCode
	}
	return 0
}

// answer is the error in a few words. It has no URL, since the one of a redirect
// can be a credential in itself.
func answer(err error) string {
	refused, ok := errors.AsType[*transport.Error](err)
	if !ok {
		if request, ok := errors.AsType[*url.Error](err); ok {
			err = request.Err
		}
		return oneLine(err.Error())
	}
	text := fmt.Sprintf("%d %s", refused.StatusCode, http.StatusText(refused.StatusCode))
	if len(refused.Errors) > 0 {
		text += fmt.Sprintf(" (%s)", oneLine(cmp.Or(refused.Errors[0].Message, string(refused.Errors[0].Code))))
	}
	return text
}

// interrupted is the error when the caller gave up or ran out of time.
func interrupted(ctx context.Context, err error) *Error {
	failure := &Error{Reason: "Interrupted", Message: "nobody waited for the registry", Remediation: "Run the preflight again and let it finish.", Err: ctx.Err()}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		failure.Reason, failure.Message = "Timeout", "the registry took too long"
		failure.Remediation = "Check the connection to the registry, then run the preflight again."
	}
	if elsewhere(err) && !errors.Is(err, ctx.Err()) {
		failure.Message += ", and last said: " + answer(err)
	}
	return failure
}

// failure is the error when no place had the image. What can be put right by a
// credential comes first, then what could not be asked: the image may be there.
func (a *Access) failure(pullSpec string, attempts []attempt) *Error {
	var texts []string
	by := map[string]attempt{}
	for _, each := range attempts {
		texts = append(texts, each.String())
		if reason := each.reason(); by[reason].place.Repository == "" {
			by[reason] = each
		}
	}
	failure := &Error{Message: strings.Join(texts, "; ")}
	for _, reason := range []string{
		"RegistryUnauthorized", "CredentialHelperFailed", "RegistryUntrusted", "RegistryUnreachable",
		"RegistryRateLimited", "RegistryError", "ImageNotFound", "RegistryBlocked",
	} {
		first, ok := by[reason]
		if !ok {
			continue
		}
		failure.Reason, failure.Remediation = reason, a.remedy(reason, pullSpec, first)
		return failure
	}
	return failure
}

// reason is the kind of answer.
func (t attempt) reason() string {
	code := status(t.err)
	_, helper := errors.AsType[*helperError](t.err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](t.err)
	switch {
	case t.err == nil:
		return "RegistryBlocked"
	case helper:
		return "CredentialHelperFailed"
	case certificate:
		return "RegistryUntrusted"
	case unauthorized(t.err):
		return "RegistryUnauthorized"
	case code == http.StatusNotFound:
		return "ImageNotFound"
	case code == http.StatusTooManyRequests:
		return "RegistryRateLimited"
	case code != 0:
		return "RegistryError"
	}
	return "RegistryUnreachable"
}

func (a *Access) remedy(reason, pullSpec string, first attempt) string {
	host, _, _ := strings.Cut(first.place.Repository, "/")
	switch reason {
	case "RegistryUnauthorized":
		return a.accountRemedy(host, first.credential)
	case "CredentialHelperFailed":
		return "Make the helper work, or log in without it: podman login " + host
	case "RegistryUntrusted":
		return "Give the cluster the CA of the registry: a ConfigMap in openshift-config with the key " + strings.Replace(host, ":", "..", 1) +
			", named in spec.additionalTrustedCA of: oc edit image.config.openshift.io cluster"
	case "RegistryUnreachable":
		return "Check that " + host + " can be reached from here, with the right proxy and CA, then run the preflight again."
	case "RegistryRateLimited":
		return "Wait as long as the registry says, or log in with an account that may pull more: podman login " + host
	case "RegistryError":
		return "Try again; if it stays, ask the operators of " + host + "."
	case "ImageNotFound":
		return "Check the pull spec, and on a mirror that the release is mirrored: oc adm release mirror"
	}
	return "Mirror the image to where the cluster may pull from, or allow its registry: oc edit image.config.openshift.io cluster. The image is " + oneLine(pullSpec)
}

// accountRemedy goes by whose credential was refused.
func (a *Access) accountRemedy(host string, refused credential) string {
	const set = "oc set data secret/pull-secret -n openshift-config --from-file=.dockerconfigjson=FILE"
	if refused.store.cluster {
		return "Nodes are refused too: renew the entry of the cluster's pull secret: " + set
	}
	remedy := "Log in with an account that may pull the image: podman login " + host
	for _, warning := range a.warnings {
		if warning.Reason == string(reasonPullSecret) {
			return "The cluster's pull secret could not be used (" + warning.Message + "). Get the permission to read it, or log in with an account that may pull the image: podman login " + host
		}
	}
	if refused.key == "" {
		remedy += "; nodes need an entry in the cluster's pull secret: " + set
	}
	return remedy
}

// oneLine makes text from outside fit for a message.
func oneLine(text string) string { return words.Line(text, maxText) }
