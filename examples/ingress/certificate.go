package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// The smallest keys, in bits, that OpenSSL accepts at security level 2, the default of
// RHEL 9 (SSL_CTX_set_security_level(3)).
const (
	minRSA = 2048
	minEC  = 224
)

// parseChain parses one or more certificates in PEM.
func parseChain(data []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(chain)+1, err)
		}
		chain = append(chain, cert)
	}
	if len(chain) == 0 {
		return nil, errors.New("no certificate in PEM")
	}
	return chain, nil
}

// weaknessOf returns why OpenSSL would reject the chain; empty if it would accept it.
func weaknessOf(chain []*x509.Certificate) (string, error) {
	for _, cert := range chain {
		for _, rule := range []func(*x509.Certificate) (string, error){weakKey, weakSignature} {
			weakness, err := rule(cert)
			if err != nil {
				return "", fmt.Errorf("%.100q has %w", cert.Subject.String(), err)
			}
			if weakness != "" {
				return fmt.Sprintf("%.100q has %s", cert.Subject.String(), weakness), nil
			}
		}
	}
	return "", nil
}

func weakKey(cert *x509.Certificate) (string, error) {
	switch key := cert.PublicKey.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSA {
			return fmt.Sprintf("an RSA key of %d bits, less than %d", bits, minRSA), nil
		}
	case *ecdsa.PublicKey:
		if bits := key.Params().BitSize; bits < minEC {
			return fmt.Sprintf("an ECDSA key of %d bits, less than %d", bits, minEC), nil
		}
	case ed25519.PublicKey:
	default:
		return "", errors.New("a key of an unknown type")
	}
	return "", nil
}

// weakSignature ignores self-signed certificates, as OpenSSL does: their signature has
// no meaning.
func weakSignature(cert *x509.Certificate) (string, error) {
	if bytes.Equal(cert.RawSubject, cert.RawIssuer) {
		return "", nil
	}
	switch cert.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		return fmt.Sprintf("a signature with %s", cert.SignatureAlgorithm), nil
	case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA,
		x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
		x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512,
		x509.DSAWithSHA256, x509.PureEd25519:
		return "", nil
	case x509.UnknownSignatureAlgorithm:
	}
	return "", errors.New("a signature with an unknown algorithm")
}

// endOf returns the time when the first certificate of the chain expires.
func endOf(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, cert := range chain {
		if cert.NotAfter.Before(end) {
			end = cert.NotAfter
		}
	}
	return end
}

// describe returns the subject, algorithm and expiry of the first certificate.
func describe(chain []*x509.Certificate) string {
	leaf := chain[0]
	return fmt.Sprintf("%.100q, %s, valid until %s", leaf.Subject.String(), leaf.SignatureAlgorithm, endOf(chain).UTC().Format(time.DateOnly))
}
