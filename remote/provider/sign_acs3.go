package provider

// Alibaba Cloud's signature V3, ACS3-HMAC-SHA256, of requests without a body, by
// Alibaba's own signer, that of its generic client. What is sent stays ours.
// https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	openapi "github.com/alibabacloud-go/openapi-util/service"
	"github.com/alibabacloud-go/tea/tea"
)

const acs3 = "ACS3-HMAC-SHA256"

// nonce is new for each try: a service takes none twice.
func nonce() string { return rand.Text() }

// signACS3 adds the headers of the signature; those of the action are there.
func signACS3(r *http.Request, key pair, now time.Time, nonce string) {
	empty := sha256.Sum256(nil)
	r.Header.Set("x-acs-date", now.UTC().Format("2006-01-02T15:04:05Z"))
	r.Header.Set("x-acs-signature-nonce", nonce)
	r.Header.Set("x-acs-content-sha256", hex.EncodeToString(empty[:]))
	if key.token != "" {
		r.Header.Set("x-acs-security-token", key.token)
	}
	r.Header.Set(authorityKey, authorityACS3(r, key))
}

// authorityACS3 signs a request with what its headers say.
func authorityACS3(r *http.Request, key pair) string {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	signed := map[string]*string{"host": &host}
	for name := range r.Header {
		if name := strings.ToLower(name); strings.HasPrefix(name, "x-acs-") {
			signed[name] = tea.String(r.Header.Get(name))
		}
	}
	query := map[string]*string{}
	for name, values := range r.URL.Query() {
		query[name] = &values[0]
	}
	what := &tea.Request{Method: &r.Method, Pathname: tea.String("/"), Headers: signed, Query: query}
	return *openapi.GetAuthorization(what, tea.String(acs3), signed["x-acs-content-sha256"], &key.id, &key.secret)
}
