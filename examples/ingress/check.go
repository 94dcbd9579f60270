package main

import (
	"context"
	"fmt"
	"time"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// soon is the time before the expiry of a certificate from which the check warns.
const soon = 30 * 24 * time.Hour

// strength fails for chains that the OpenSSL of the target's router rejects.
func strength(ctx context.Context, t *preflight.T) error {
	all, err := defaultCertificates(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		t.Skipf("the cluster has no IngressController")
	}
	for _, c := range all {
		t.Evidence(c.controller, describe(c.chain))
		weakness, err := weaknessOf(c.chain)
		switch {
		case err != nil:
			return fmt.Errorf("cannot check %s: %w", c, err)
		case weakness != "":
			t.Reason("CertificateRejected")
			t.Failf("the target's OpenSSL would reject %s: %s", c, weakness)
			replace(t, c)
		}
	}
	return nil
}

// expiry warns of chains that expire soon, and fails for expired ones.
func expiry(ctx context.Context, t *preflight.T) error {
	all, err := defaultCertificates(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		t.Skipf("the cluster has no IngressController")
	}
	for _, c := range all {
		end := endOf(c.chain)
		left := time.Until(end)
		if left > soon {
			continue
		}
		outcomef, verb := t.Warnf, "expires"
		if left < 0 {
			outcomef, verb = t.Failf, "expired"
		}
		t.Reason("CertificateExpiry")
		outcomef("%s, %s on %s", c, verb, end.UTC().Format(time.DateOnly))
		replace(t, c)
	}
	return nil
}

// replace reports how to replace the certificate c.
func replace(t *preflight.T, c defaultCertificate) {
	t.Object(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: secretNamespace, Name: c.secret})
	t.Remedyf("Obtain a certificate with an RSA key of at least %d bits or an ECDSA key, signed with SHA-256 or better, then use it.", minRSA)
	t.Commandf("oc create secret tls %s-new -n %s --cert=tls.crt --key=tls.key", c.controller, secretNamespace)
	t.Commandf(`oc patch ingresscontroller %s -n %s --type=merge -p '{"spec":{"defaultCertificate":{"name":"%s-new"}}}'`,
		c.controller, controllerNamespace, c.controller)
}
