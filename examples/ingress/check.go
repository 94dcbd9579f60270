package main

import (
	"context"
	"fmt"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// soon is how long before the end of a certificate an administrator should
// hear of it.
const soon = 30 * 24 * time.Hour

// strength fails for chains that the OpenSSL of the target's router rejects.
func strength(ctx context.Context, t *preflight.T) error {
	all, err := defaultCertificates(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		t.Skipf("there is no IngressController")
	}
	for _, c := range all {
		t.Evidence(c.controller, describe(c.chain))
		weakness, err := weaknessOf(c.chain)
		switch {
		case err != nil:
			return fmt.Errorf("cannot judge %s: %w", c, err)
		case weakness != "":
			t.Reason("CertificateRejected")
			t.Failf("the target's OpenSSL would reject %s: %s", c, weakness)
			replace(t, c)
		}
	}
	return nil
}

// expiry warns of chains that end soon, and fails for those that have ended.
func expiry(ctx context.Context, t *preflight.T) error {
	all, err := defaultCertificates(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		t.Skipf("there is no IngressController")
	}
	for _, c := range all {
		end := endOf(c.chain)
		left := time.Until(end)
		if left > soon {
			continue
		}
		say, verb := t.Warnf, "expires"
		if left < 0 {
			say, verb = t.Failf, "expired"
		}
		t.Reason("CertificateExpiry")
		say("%s, %s on %s", c, verb, end.UTC().Format(time.DateOnly))
		replace(t, c)
	}
	return nil
}

// replace says how to put another certificate in the place of c.
func replace(t *preflight.T, c defaultCertificate) {
	t.Object(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: secretNamespace, Name: c.secret})
	t.Remedyf("Get a certificate with an RSA key of at least %d bits or an ECDSA key, signed with SHA-256 or better, then:", minRSA)
	t.Remedyf("oc create secret tls %s-new -n %s --cert=tls.crt --key=tls.key", c.controller, secretNamespace)
	t.Remedyf(`oc patch ingresscontroller %s -n %s --type=merge -p '{"spec":{"defaultCertificate":{"name":"%s-new"}}}'`,
		c.controller, controllerNamespace, c.controller)
}
