// Made by `npm run api` from openapi.json: the types of the server's API. Not edited by hand.

export interface paths {
    "/api/v1/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Open gates of the organisation, oldest first */
        get: operations["listApprovals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The audit trail, newest first; for administrators */
        get: operations["listAuditRows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/anchor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An anchor: the heads of the audit trail, to be kept elsewhere; for operators */
        get: operations["getAuditAnchor"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The audit trail of all organisations as a file that can be verified, one JSON object per line; for operators */
        get: operations["exportAuditTrail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Verify the hash chain of the audit trail from the first row to the last */
        get: operations["verifyAuditTrail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/channels": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Your channels, and those of the organisation */
        get: operations["listChannels"];
        put?: never;
        /** Create a channel; a webhook's secret is shown only in this response */
        post: operations["createChannel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/channels/{channel}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a channel; pending messages are dropped */
        delete: operations["deleteChannel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/channels/{channel}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a message through a channel now */
        post: operations["testChannel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check a definition without storing it: 204, 200 with warnings, or 422 with all its errors */
        post: operations["checkDefinition"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/connections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The databases that query steps can use, without their URLs */
        get: operations["listConnections"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/connections/{connection}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A connection, without its URL */
        get: operations["getConnection"];
        /** Create or replace a connection; a SQLite file requires the right `operator` */
        put: operations["putConnection"];
        post?: never;
        /** Remove a connection */
        delete: operations["deleteConnection"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The events of all runs of the organisation, from now on or from where you stopped
         * @description Server-sent events in the format of a run's stream. Ids are positions in the log of all runs. Events of one run
         *     arrive in order. Events that concern you personally, such as a gate that you may answer, are also sent as
         *     `notification`.
         */
        get: operations["streamEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** API keys: all keys of the organisation for administrators, your own otherwise */
        get: operations["listKeys"];
        put?: never;
        /** Create an API key; the response is the only place that shows it */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/keys/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a key permanently */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        /** Rename a key, pause it or resume it */
        patch: operations["updateKey"];
        trace?: never;
    };
    "/api/v1/master-key/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Seal everything with the first of the server's master keys; for operators */
        post: operations["rotateMasterKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mcp-servers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The MCP servers of the organisation as seen by this node, with their tools */
        get: operations["listMcpServers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mcp-servers/{server}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An MCP server with its tools */
        get: operations["getMcpServer"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/mcp-servers/{server}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept the tools that a server offers now; new and changed tools can be called from then on */
        post: operations["acceptMcpTools"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The authenticated caller and their rights */
        get: operations["getCaller"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The live nodes: processes that execute steps on the same data */
        get: operations["listNodes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Delivery of notifications, newest first: yours, or all of the organisation if you are an administrator */
        get: operations["listNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organisations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All organisations of this server; for operators */
        get: operations["listOrganisations"];
        put?: never;
        /** Create an organisation with a first user `admin`, whose key is shown only in the response */
        post: operations["createOrganisation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/organisations/{id}/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Give an organisation another plan or custom limits; for operators */
        put: operations["setPlan"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The policies of the organisation, which apply to all its workflows */
        get: operations["listPolicies"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/{policy}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A policy */
        get: operations["getPolicy"];
        /** Create or replace a policy; takes effect from the next call */
        put: operations["putPolicy"];
        post?: never;
        /** Remove a policy */
        delete: operations["deletePolicy"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policies/{policy}/log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a policy in the mode `log` would have stopped since it was set */
        get: operations["getPolicyLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/policy-tests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Try policies on the calls of past runs; changes nothing */
        post: operations["testPolicies"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/preferences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which events you are notified of, and where */
        get: operations["getPreferences"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change which events you are notified of; omitted fields are kept */
        patch: operations["updatePreferences"];
        trace?: never;
    };
    "/api/v1/queries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The saved queries of the organisation */
        get: operations["listQueries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queries/{query}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A saved query */
        get: operations["getQuery"];
        /** Create or replace a saved query; takes effect from the next step */
        put: operations["putQuery"];
        post?: never;
        /** Remove a saved query */
        delete: operations["deleteQuery"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reviews": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The reviews that wait for a person, oldest first */
        get: operations["listReviews"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reviews/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A review with what it changes, what is new in it, and what the simulation and the policies say */
        get: operations["getReview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reviews/{id}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept what was shown, as a version or for one run. Refused to agents' keys */
        post: operations["acceptReview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reviews/{id}/refuse": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Refuse what was shown, with a comment that the agent can read. Refused to agents' keys */
        post: operations["refuseReview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/roles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Roles: named sets of grants, built-in roles first */
        get: operations["listRoles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/roles/{role}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Create or replace a role */
        put: operations["putRole"];
        post?: never;
        /** Remove a role that no user has */
        delete: operations["deleteRole"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs, newest first */
        get: operations["listRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel every matching run that has not ended, up to 10,000 */
        post: operations["cancelRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Retry every matching run that did not complete, up to 10,000 */
        post: operations["retryRuns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A run with its steps, and what it waits for
         * @description Of a run with more than 1,000 steps, `tasks` has the first. Inputs and outputs of steps beyond 4 MB in all are left
         *     out, and `is_omitted` says so. `GET /runs/{run}/steps` has all of them in pages.
         */
        get: operations["getRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Replace the labels of a run */
        patch: operations["labelRun"];
        trace?: never;
    };
    "/api/v1/runs/{run}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel a run: running steps are stopped, and no others start */
        post: operations["cancelRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Erase all payloads of a finished run; its log and the digests remain */
        post: operations["eraseRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The log of a run, in order
         * @description `limit` counts commits, which may have several events. A page ends early if its events are many.
         */
        get: operations["listRunEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The graph of a run's version */
        get: operations["getRunGraph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Release a run from quarantine: it is driven again */
        post: operations["releaseRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/rerun": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a new run with the same input
         * @description If there is a body, it replaces the input. With `wait`: 200 with the finished run, or 202 with the running one when
         *     the time is up.
         */
        post: operations["rerunRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which steps a retry would keep, and which would run again */
        get: operations["previewRetry"];
        put?: never;
        /**
         * Retry a run that failed, timed out or was cancelled: steps that did not succeed run again
         * @description With `wait`: 200 with the finished run, or 202 with the running one when the time is up.
         */
        post: operations["retryRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The state of a run in one object, as the socket sends it with `workflow_status_update` */
        get: operations["getRunState"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The steps of a run in the order of the definition, in pages
         * @description A page ends early if the inputs and outputs of its steps are more than 4 MB.
         */
        get: operations["listSteps"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/steps/{step}/approval": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The open gate of a step, with the digest for the answer */
        get: operations["getApproval"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/steps/{step}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve at a gate */
        post: operations["approveStep"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/steps/{step}/deliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deliver the call that a step waits for, by the step's name */
        post: operations["deliverToStep"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/steps/{step}/deny": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deny at a gate */
        post: operations["denyStep"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/steps/{step}/finish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End a stuck step with a given result; for administrators, and logged */
        post: operations["finishStep"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/steps/{step}/link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a link to answer without a key: for yourself, or as an administrator for anyone who may answer */
        post: operations["createApprovalLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/steps/{step}/verdict": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Report what happened to a call whose outcome is unknown */
        post: operations["settleStep"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{run}/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * All events of a run as they happen, from its start or from where you stopped
         * @description Server-sent events: `event` is the type of the fact, `data` is the event as JSON, `id` is the value to send as
         *     `Last-Event-ID` to resume after it. When the run has ended, an event `end` with its status follows and the stream
         *     closes. Reconnecting after that returns 204.
         */
        get: operations["streamRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All schedules of the organisation */
        get: operations["listSchedules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a schedule that was added with a request; its runs continue
         * @description Schedules of a definition go with the definition.
         */
        delete: operations["deleteSchedule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/secrets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The secrets of the organisation, without their values */
        get: operations["listSecrets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/secrets/{secret}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A secret, without its value */
        get: operations["getSecret"];
        /** Create a secret, or change its value or hosts; takes effect from the next step */
        put: operations["putSecret"];
        post?: never;
        /** Remove a secret */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sign-in-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a one-time link that signs a browser in as you, valid for a day; administrators can create links for others */
        post: operations["createSignInLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sign-out": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sign this browser out */
        post: operations["signOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/steps/{step}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Approve at a gate, by its step id */
        post: operations["approveStepById"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/steps/{step}/deny": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deny at a gate, by its step id */
        post: operations["denyStepById"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/steps/{step}/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Signal a waiting step: approves a gate, ends a sleep, or delivers an empty call */
        post: operations["signalStep"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/test-runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run an unsaved definition, separately from real runs
         * @description The definition needs no name. With `wait`: 200 with the finished run, or 202 with the running one when the time is up.
         */
        post: operations["startTestRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/test-runs/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Stop a test run and delete it */
        delete: operations["deleteTestRun"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The workflows that are exposed as tools, by name */
        get: operations["listTools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tools/catalogue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tools that steps may call here: built-in ones, and accepted ones of MCP servers */
        get: operations["listCatalogue"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How much of its plan the organisation has used */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The users of the organisation */
        get: operations["listUsers"];
        put?: never;
        /** Create a user */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A user */
        get: operations["getUser"];
        put?: never;
        post?: never;
        /** Disable a user permanently; their history is kept */
        delete: operations["disableUser"];
        options?: never;
        head?: never;
        /** Change a user's roles or grants, or disable them; takes effect from the next step of their runs */
        patch: operations["updateUser"];
        trace?: never;
    };
    "/api/v1/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The workflows of the organisation, by name */
        get: operations["listWorkflows"];
        put?: never;
        /**
         * Create a workflow from a definition in JSON or YAML, in any dialect
         * @description 201 for a new workflow, 200 if an identical one exists, 409 if another one has that name: use `PUT` to create its
         *     next version.
         */
        post: operations["createWorkflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A workflow with its definition. A deleted one is found by its id */
        get: operations["getWorkflow"];
        /**
         * Create the next version of a workflow, or the first
         * @description Running runs keep their version. With `If-Match`, only if the workflow has not changed.
         */
        put: operations["putWorkflow"];
        post?: never;
        /** Delete a workflow; running runs finish, and it can be restored */
        delete: operations["deleteWorkflow"];
        options?: never;
        head?: never;
        /**
         * Enable or disable a workflow, or make it a part of a set
         * @description A disabled workflow refuses triggers and skips its schedule. Nothing is deleted.
         */
        patch: operations["updateWorkflow"];
        trace?: never;
    };
    "/api/v1/workflows/{id}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The graph of a workflow, for any dialect */
        get: operations["getWorkflowGraph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Hold new runs of a workflow, or of one concurrency key: they are accepted and wait in the queue */
        post: operations["pauseWorkflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a deleted workflow, by its id or by the name of the one that was deleted last
         * @description It gets its schedules back, and new webhook URLs. 409 while another workflow has its name.
         */
        post: operations["restoreWorkflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Release held runs */
        post: operations["resumeWorkflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/rotate-webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Give a workflow new webhook URLs; the old ones stop working */
        post: operations["rotateWebhooks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs of a workflow, newest first */
        get: operations["listRunsOfWorkflow"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/runs/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run of a workflow with all its steps */
        get: operations["getRunOfWorkflow"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/runs/{run}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel a run of a workflow */
        post: operations["cancelRunOfWorkflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/schedule": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** When a workflow will start by itself: the next ten ticks of each schedule */
        get: operations["listSchedulesOfWorkflow"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a workflow again and again, besides what its definition says
         * @description The schedule belongs to the caller: its runs have the rights that the caller has at that time. New versions of the
         *     workflow leave it alone; deleting the workflow removes it.
         */
        post: operations["createSchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/trigger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a run; the body is its input
         * @description 201 for a new run, 200 if the same `Idempotency-Key` and body have already started one (409 with a different body).
         *     With `wait`: 200 with the finished run, or 202 with the running one when the time is up. With `at` or `delay` the run
         *     is `scheduled` until that time, under the version of this request; it can be cancelled like any other.
         */
        post: operations["triggerWorkflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All versions of a workflow, newest first */
        get: operations["listVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/workflows/{id}/versions/{version}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One version of a workflow */
        get: operations["getVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/ws": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A WebSocket for joining runs
         * @description Send `{"event": "workflow_run_join", "data": {"runId": "run_…"}}` or `workflow_run_leave`. You receive
         *     `workflow_node_update` and `workflow_status_update` with the state of the run and then for each change;
         *     `notification` for events that concern you personally, joined or not; and `error` with a problem if a message fails.
         */
        get: operations["openSocket"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/approve/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A page that shows the question; it decides nothing
         * @description Errors are pages for clients that accept HTML, and problems for others.
         */
        get: operations["showApprovalPage"];
        put?: never;
        /** Submit the answer; the link works once */
        post: operations["submitApprovalPage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/in/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start a workflow by calling its URL; any content type */
        post: operations["callTrigger"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sign-in/{link}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sign a browser in with a link; the link works once */
        get: operations["signIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/wh/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A page for people who open the URL in a browser; it delivers nothing */
        get: operations["showCallbackPage"];
        put?: never;
        /**
         * Deliver the call that a step waits for
         * @description A call that arrives before its step waits is stored. 409 if one was already delivered, 410 if the step or the run
         *     has ended. A body of more than 256 KB is truncated, or refused with 413 (setting `limits.long_callbacks`).
         */
        post: operations["deliverCallback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The tools to accept. */
        AcceptRequest: {
            /**
             * @description All tools on offer if omitted.
             * @default []
             */
            tools: components["schemas"]["AcceptedTool"][];
        };
        AcceptedTool: {
            /** @description Digest of the reviewed tool. Refused if the server offers a different one by now. */
            digest?: string | null;
            /** @description The name on its server. */
            tool: string;
        };
        /** @description What an anchor signs, to the letter. */
        AnchorHeads: {
            /**
             * Format: int64
             * @description Milliseconds since 1970, as they are signed.
             */
            at: number;
            /** @description The id of the key that signs. Without one, anyone can compute the signature. */
            key?: string | null;
            writers: components["schemas"]["AnchorWriter"][];
        };
        /** @description The heads of the audit trail at some time, with a signature. As a line of JSON it is for `doctor --anchor`. */
        AuditAnchor: {
            anchor: components["schemas"]["AnchorHeads"];
            /** @description HMAC over `anchor`, in hexadecimal. */
            signature: string;
        };
        AnchorWriter: {
            /** @description A hash over them, in hexadecimal. */
            head: string;
            /**
             * Format: int64
             * @description How often the writer's tally was written.
             */
            number: number;
            /**
             * Format: int64
             * @description Audit rows that it has written.
             */
            rows: number;
            /** Format: int32 */
            writer: number;
        };
        AnswerRequest: {
            /** @default null */
            comment: string | null;
            /** @description The data for the gate's form. */
            data?: unknown;
            /**
             * @description Digest of what was shown by `GET …/approval`. Required if the gate was asked before, or if a call is held.
             * @default null
             */
            digest: string | null;
            /** @description The whole input of a held call, changed: it runs instead. Only to approve, where the policy allows changes. */
            input?: unknown;
        };
        /**
         * @description An approval, or a verdict on a call that may have happened.
         * @enum {string}
         */
        ApprovalKind: "approval" | "verdict";
        /**
         * @description A gate that waits for a person.
         * @example {
         *       "id": "step_01k3v6x0x8f7m2_YXNr",
         *       "run_id": "run_01k3v6x0x8f7m2",
         *       "step": "ask",
         *       "workflow": "order",
         *       "attempt": 1,
         *       "created_by": "ann",
         *       "asked_by": "ann",
         *       "kind": "approval",
         *       "mine": true,
         *       "since": "2026-02-22T10:00:01.000Z",
         *       "until": "2026-02-24T10:00:01.000Z",
         *       "on_timeout": "deny",
         *       "digest": "6c1f…",
         *       "asks": {
         *         "message": "Ship order 4711?",
         *         "approvers": [
         *           "finance"
         *         ],
         *         "calls": [
         *           {
         *             "step": "ship",
         *             "kind": "tool",
         *             "tool": "ship_order",
         *             "input": {
         *               "order": 4711
         *             }
         *           }
         *         ]
         *       }
         *     }
         */
        Approval: {
            /**
             * Format: int32
             * @description Number of approvals required.
             */
            approvals?: number;
            /** @description Who has approved so far, if several approvals are required. */
            approved_by?: string[];
            /** @description Who asked for the run, in words: the user, or an agent's key with its user and what its client calls itself. */
            asked_by: string;
            /**
             * @description The resolved question: message, approvers, form, the `calls` that wait for an approval, and those that follow a
             *     denial (`on_denial`).
             */
            asks: components["schemas"]["Question"];
            /** Format: int32 */
            attempt: number;
            created_by: string;
            /** @description Digest of everything shown. An answer refers to it. */
            digest?: string | null;
            /** @description Whether it has been escalated. */
            escalated?: boolean;
            escalates_at?: components["schemas"]["Instant"] | null;
            /** @description For `POST /api/v1/steps/{id}/ready`. */
            id: string;
            kind: components["schemas"]["ApprovalKind"];
            /** @description Whether you may answer it. */
            mine: boolean;
            on_timeout?: components["schemas"]["OnTimeout"] | null;
            run_id: string;
            since: components["schemas"]["Instant"];
            step: string;
            until?: components["schemas"]["Instant"] | null;
            /** Format: int32 */
            version?: number;
            /** @description Why it may not reach anyone who can answer it. */
            warnings?: string[];
            workflow: string;
        };
        /** @description A call that an answer allows or leads to. */
        AskedCall: {
            /** @description The call is also made if it is approved. */
            also_if_approved?: boolean;
            /** @description Binds the approval to exactly this call; only if the call is covered. */
            digest?: string;
            /** @description The arguments, as far as they are known. */
            input?: unknown;
            kind: components["schemas"]["StepKind"];
            /** @description The call depends on results that are not known yet, so it is not covered. */
            not_yet_known?: boolean;
            /** @description Path of the step. */
            step: string;
            /** @description The arguments are too long to be shown, so the call is not covered. */
            too_large_to_show?: boolean;
            tool?: string;
            /** @description JSON Pointers to the unknown parts of the arguments. */
            unknown?: string[];
            workflow?: string;
        };
        Attempt: {
            /** Format: int32 */
            attempt: number;
            /** @description The run that it started. */
            child_run_id?: string;
            /** Format: int64 */
            duration_ms?: number;
            error?: components["schemas"]["StepError"] | null;
            finished_at?: components["schemas"]["Instant"] | null;
            /** @description Headers of the response. */
            headers?: {
                [key: string]: string;
            };
            log?: components["schemas"]["LogLine"][];
            output?: unknown;
            /** @description Why it did not succeed: lost (its process died), timeout, refused (by rights or a policy) or failed. */
            reason?: components["schemas"]["AttemptReason"];
            started_at: components["schemas"]["Instant"];
            status: components["schemas"]["AttemptStatus"];
            /** Format: int32 */
            status_code?: number;
        };
        /**
         * @description Why an attempt did not succeed: its process ended, it took too long, rights or a policy refused it, or it failed.
         * @enum {string}
         */
        AttemptReason: "lost" | "timeout" | "refused" | "failed";
        /**
         * @description Status of an attempt: that of the step at the time, or `lost` if its process ended before it reported.
         * @enum {string}
         */
        AttemptStatus: "pending" | "running" | "sleeping" | "waiting" | "success" | "failed" | "timeout" | "denied" | "template_error" | "skipped" | "cancelled" | "lost";
        /** @description Whether the audit trail was tampered with. */
        AuditVerdict: {
            /**
             * Format: int64
             * @description The first row with a wrong hash; none if the trail is intact.
             */
            broken_at?: number | null;
            /** Format: int64 */
            rows: number;
        };
        /**
         * @example {
         *       "id": 4711,
         *       "at": "2026-02-22T10:00:00.000Z",
         *       "by": "ann",
         *       "action": "run.cancel",
         *       "target": "run_01k3v6x0x8f7m2",
         *       "detail": {
         *         "reason": "wrong order"
         *       },
         *       "hash": "674dcee479115b78…"
         *     }
         */
        Audit: {
            /** @description For example `run.cancel`. */
            action: string;
            at: components["schemas"]["Instant"];
            by: string;
            detail: unknown;
            /** @description Hash over this row and the previous one. */
            hash: string;
            /** Format: int64 */
            id: number;
            /** @description The target of the action. */
            target: string;
        };
        BulkRefusal: {
            reason: string;
            run_id: string;
        };
        BulkRequest: {
            /** @description The runs, by the same filters as lists. `{}` matches all runs. */
            filter: components["schemas"]["RunFilters"];
            /** @description For retries: continue under the newest version. */
            newest?: boolean;
            reason?: string | null;
        };
        /** @description The result of a bulk operation. */
        BulkResult: {
            /** @description Runs that were changed. */
            done: string[];
            /** @description More runs match than one request may change: repeat the request. */
            more: boolean;
            refused: components["schemas"]["BulkRefusal"][];
        };
        CancelRequest: {
            /**
             * @description The reason, for the log.
             * @default null
             */
            reason: string | null;
        };
        /** @description A tool that steps may call. */
        CatalogueTool: {
            /** @description Whether this key may call it. */
            allowed: boolean;
            /** @description Its first line. */
            description: string;
            /** @description JSON Schema of its arguments. */
            input_schema: Record<string, never>;
            name: string;
            /** @description Whether it says that it changes nothing. */
            read_only: boolean;
            /** @description Its MCP server; null for a built-in tool. */
            server?: string | null;
        };
        /**
         * @description What happens to times that were missed.
         * @enum {string}
         */
        CatchUp: "none" | "last" | "all";
        /** @description A held call that an approver changed. */
        ChangedCall: {
            /** @default  */
            by: string;
            /** @description The input that the definition gave it. */
            from?: unknown;
        };
        /** @description A channel, without its credentials. */
        Channel: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            events: components["schemas"]["Topic"][];
            id: string;
            medium: components["schemas"]["Medium"];
            name: string;
            /** @description Belongs to the organisation, not to a single user. */
            organisation: boolean;
            /** @description A shortened target, enough to tell it from others. */
            target: string;
            /** @description The owner. */
            user?: string | null;
        };
        /** @description The content of a connection. */
        ConnectionRequest: {
            /**
             * Format: int32
             * @default null
             */
            rows: number | null;
            /**
             * Format: int64
             * @default null
             */
            timeout_ms: number | null;
            /**
             * @description `postgres://…` or `sqlite:/path`, optionally with `{{secrets.NAME}}`. If omitted, the current URL is kept.
             * @default null
             */
            url: string | null;
            /** @default false */
            write: boolean;
        };
        /** @description A database for query steps. Its URL is never shown. */
        Connection: {
            changed_at: components["schemas"]["Instant"];
            changed_by: string;
            created_at: components["schemas"]["Instant"];
            /** @description The name of the database, or the path for SQLite. */
            database: string;
            host?: string | null;
            id: string;
            name: string;
            /**
             * Format: int32
             * @description Maximum number of rows of a query, if lower than the server's limit.
             */
            rows?: number | null;
            scheme: components["schemas"]["DatabaseScheme"];
            sealed_with: string;
            /**
             * Format: int64
             * @description Maximum duration of a statement in milliseconds, if lower than the server's limit.
             */
            timeout_ms?: number | null;
            /** @description Whether statements may write. */
            write: boolean;
        };
        /** @description A response: the result is in `data`. */
        Data_AuditAnchor: {
            data: components["schemas"]["AuditAnchor"];
        };
        /** @description A response: the result is in `data`. */
        Data_Approval: {
            data: components["schemas"]["Approval"];
        };
        /** @description A response: the result is in `data`. */
        Data_AuditVerdict: {
            data: components["schemas"]["AuditVerdict"];
        };
        /** @description A response: the result is in `data`. */
        Data_BulkResult: {
            data: components["schemas"]["BulkResult"];
        };
        /** @description A response: the result is in `data`. */
        Data_Connection: {
            data: components["schemas"]["Connection"];
        };
        /** @description A response: the result is in `data`. */
        Data_Graph: {
            data: components["schemas"]["Graph"];
        };
        /** @description A response: the result is in `data`. */
        Data_Key: {
            data: components["schemas"]["Key"];
        };
        /** @description A response: the result is in `data`. */
        Data_Link: {
            data: components["schemas"]["Link"];
        };
        /** @description A response: the result is in `data`. */
        Data_McpServer: {
            data: components["schemas"]["McpServer"];
        };
        /** @description A response: the result is in `data`. */
        Data_Me: {
            data: components["schemas"]["Me"];
        };
        /** @description A response: the result is in `data`. */
        Data_NewChannel: {
            data: components["schemas"]["NewChannel"];
        };
        /** @description A response: the result is in `data`. */
        Data_NewKey: {
            data: components["schemas"]["NewKey"];
        };
        /** @description A response: the result is in `data`. */
        Data_NewOrganisation: {
            data: components["schemas"]["NewOrganisation"];
        };
        /** @description A response: the result is in `data`. */
        Data_Organisation: {
            data: components["schemas"]["Organisation"];
        };
        /** @description A response: the result is in `data`. */
        Data_PolicyLog: {
            data: components["schemas"]["PolicyLog"];
        };
        /** @description A response: the result is in `data`. */
        Data_PolicyTest: {
            data: components["schemas"]["PolicyTest"];
        };
        /** @description A response: the result is in `data`. */
        Data_Policy: {
            data: components["schemas"]["Policy"];
        };
        /** @description A response: the result is in `data`. */
        Data_Preferences: {
            data: components["schemas"]["Preferences"];
        };
        /** @description A response: the result is in `data`. */
        Data_Query: {
            data: components["schemas"]["Query"];
        };
        /** @description A response: the result is in `data`. */
        Data_Received: {
            data: components["schemas"]["Received"];
        };
        /** @description A response: the result is in `data`. */
        Data_RetryPreview: {
            data: components["schemas"]["RetryPreview"];
        };
        /** @description A response: the result is in `data`. */
        Data_ReviewDetail: {
            data: components["schemas"]["ReviewDetail"];
        };
        /** @description A response: the result is in `data`. */
        Data_ReviewSummary: {
            data: components["schemas"]["ReviewSummary"];
        };
        /** @description A response: the result is in `data`. */
        Data_Role: {
            data: components["schemas"]["Role"];
        };
        /** @description A response: the result is in `data`. */
        Data_Rotated: {
            data: components["schemas"]["Rotated"];
        };
        /** @description A response: the result is in `data`. */
        Data_Run: {
            data: components["schemas"]["Run"];
        };
        /** @description A response: the result is in `data`. */
        Data_RunState: {
            data: components["schemas"]["RunState"];
        };
        /** @description A response: the result is in `data`. */
        Data_ScheduleSummary: {
            data: components["schemas"]["ScheduleSummary"];
        };
        /** @description A response: the result is in `data`. */
        Data_Secret: {
            data: components["schemas"]["Secret"];
        };
        /** @description A response: the result is in `data`. */
        Data_TestResult: {
            data: components["schemas"]["TestResult"];
        };
        /** @description A response: the result is in `data`. */
        Data_Triggered: {
            data: components["schemas"]["Triggered"];
        };
        /** @description A response: the result is in `data`. */
        Data_Usage: {
            data: components["schemas"]["Usage"];
        };
        /** @description A response: the result is in `data`. */
        Data_User: {
            data: components["schemas"]["User"];
        };
        /** @description A response: the result is in `data`. */
        Data_Version: {
            data: components["schemas"]["Version"];
        };
        /** @description A response: the result is in `data`. */
        Data_CheckResult: {
            data: components["schemas"]["CheckResult"];
        };
        /** @description A response: the result is in `data`. */
        Data_Workflow: {
            data: components["schemas"]["Workflow"];
        };
        /** @description A response: the result is in `data`. */
        Data_WorkflowSummary: {
            data: components["schemas"]["WorkflowSummary"];
        };
        /** @enum {string} */
        DatabaseScheme: "postgres" | "sqlite";
        /** @description A workflow that was defined, and what is suspicious in its definition. */
        Defined: {
            data: components["schemas"]["WorkflowSummary"];
            /** @description Of what an agent's key wrote. If it is `proposed`, `data` is the version that stays current. */
            review?: components["schemas"]["ReviewSummary"];
            warnings?: components["schemas"]["Fault"][];
        };
        /** @enum {string} */
        DeliveryStatus: "waiting" | "sent" | "failed" | "dropped";
        /**
         * @description How a definition is written.
         * @enum {string}
         */
        Dialect: "tasks" | "flow" | "graph";
        /** @description A held call as it was before an approver changed it. */
        EarlierCall: {
            /** @description Who changed it. */
            by: string;
            digest: string;
            input: unknown;
        };
        /** @description A deleted workflow whose name another one has now. */
        EarlierWorkflow: {
            deleted_at: components["schemas"]["Instant"];
            id: string;
        };
        /** @enum {string} */
        EdgeStyle: "normal" | "error" | "back";
        /** @enum {string} */
        PolicyEffect: "allow" | "require_approval" | "deny";
        StepError: {
            code: string;
            message: string;
        };
        /** @description One fact of a run's log */
        Event: components["schemas"]["CreatedEvent"] | components["schemas"]["ScheduledEvent"] | components["schemas"]["DueEvent"] | components["schemas"]["StartedEvent"] | components["schemas"]["EnteredEvent"] | components["schemas"]["RetryingEvent"] | components["schemas"]["AgainEvent"] | components["schemas"]["HeldEvent"] | components["schemas"]["UnsureEvent"] | components["schemas"]["OpenedEvent"] | components["schemas"]["ClosedEvent"] | components["schemas"]["FinishedEvent"] | components["schemas"]["SkippedEvent"] | components["schemas"]["KeptEvent"] | components["schemas"]["ApprovedEvent"] | components["schemas"]["ChangedEvent"] | components["schemas"]["EscalatedEvent"] | components["schemas"]["OverriddenEvent"] | components["schemas"]["EndedEvent"] | components["schemas"]["RetriedEvent"] | components["schemas"]["AdoptedEvent"];
        /** @description One error, its location, and how to fix it. */
        Fault: {
            code?: string | null;
            /** Format: int32 */
            column?: number | null;
            fix?: components["schemas"]["Fix"] | null;
            hint?: string | null;
            /** Format: int32 */
            line?: number | null;
            message: string;
            /** @description For people: `tasks.send.needs[0]`, or the name of a query parameter or header. */
            path: string;
            /** @description The same place as a JSON Pointer: `/tasks/send/needs/0`. */
            pointer: string;
        };
        /** @description The result of a stuck step: an output or an error. */
        FinishRequest: {
            /**
             * @description The reason, for the log.
             * @default null
             */
            comment: string | null;
            /** @default null */
            error: string | null;
            output?: unknown;
            /** @default null */
            status: components["schemas"]["FinishStatus"] | null;
        };
        /** @enum {string} */
        FinishStatus: "success" | "failed";
        /** @description A value to replace in a definition. */
        Fix: {
            /** @description A JSON Pointer; empty for the whole definition. */
            path: string;
            value: unknown;
        };
        /** @description A JSON Schema, usually of an object whose properties are the fields of a form. */
        Form: {
            description?: string;
            /** @description Schemas by the name of the field. */
            properties?: {
                [key: string]: Record<string, never>;
            };
            required?: string[];
            title?: string;
            type?: string;
        };
        /** @description An approval of a call that a policy held. */
        GivenApproval: {
            /** @default  */
            by: string;
            /** @default null */
            comment: string | null;
            data?: unknown;
        };
        GraphEdge: {
            from: number;
            /** @description Handle or condition; empty for plain success. */
            label: string;
            style: components["schemas"]["EdgeStyle"];
            to: number;
        };
        GraphNode: {
            /** @description A short summary: `POST /charge`, `3d`. */
            detail: string;
            kind: components["schemas"]["StepKind"];
            name: string;
            /** @description The loop or for_each that contains it. */
            parent?: number | null;
            /** @description The path of the step in runs, without iteration and item numbers: `each[].charge`. */
            path: string;
        };
        /** @description The steps of a version and the edges between them, for any dialect. Edges refer to steps by their index in `nodes`. */
        Graph: {
            edges: components["schemas"]["GraphEdge"][];
            /** @description Name of the workflow. */
            name: string;
            nodes: components["schemas"]["GraphNode"][];
            /** Format: int32 */
            version: number;
        };
        /**
         * Format: date-time
         * @description An instant, written as `2026-02-22T10:00:00Z`.
         * @example 2026-02-22T10:00:00Z
         */
        Instant: string;
        /** @description Only the given fields are changed. */
        KeyChangeRequest: {
            /** @default null */
            name: string | null;
            /** @default null */
            paused: boolean | null;
        };
        /**
         * @example {
         *       "id": "key_01k3v6q9",
         *       "name": "ci",
         *       "user": "ann",
         *       "agent": false,
         *       "start": "sw_57hYnK",
         *       "paused": false,
         *       "grants": [
         *         "workflow.read",
         *         "workflow.run"
         *       ],
         *       "created_at": "2026-01-05T12:00:00.000Z",
         *       "created_by": "ann"
         *     }
         */
        Key: {
            /** @description An agent's key: never administers, and cannot answer gates unless it lists `workflow.approve` explicitly. */
            agent: boolean;
            created_at: components["schemas"]["Instant"];
            created_by: string;
            expires_at?: components["schemas"]["Instant"] | null;
            /** @description Restricts the user's grants; without a list the key has all of them. */
            grants?: string[] | null;
            id: string;
            last_used_at?: components["schemas"]["Instant"] | null;
            name: string;
            paused: boolean;
            revoked_at?: components["schemas"]["Instant"] | null;
            /** @description The first characters of the key. */
            start: string;
            user: string;
        };
        LabelRequest: {
            /** @description Replaces all labels. */
            labels: {
                [key: string]: string;
            };
        };
        /**
         * @description A duration, written as `90s`, `10m` or `1h30m`.
         * @example 10m
         */
        Length: string;
        /** @description Omitted fields are unlimited. */
        Limits: {
            /**
             * Format: int32
             * @default null
             */
            concurrent_runs: number | null;
            /**
             * @description Whether cron triggers are allowed; true by default.
             * @default null
             */
            cron: boolean | null;
            /**
             * Format: int32
             * @description Never more than the server's setting.
             * @default null
             */
            descendants_per_run: number | null;
            /**
             * Format: int64
             * @default null
             */
            executions_per_month: number | null;
            /**
             * Format: int64
             * @description Bytes of all inputs and results of one run.
             * @default null
             */
            run_bytes: number | null;
            /**
             * Format: int32
             * @default null
             */
            tasks_per_workflow: number | null;
            /**
             * Format: int32
             * @default null
             */
            workflows: number | null;
        };
        LinkRequest: {
            /**
             * @description The user who will answer; you, if omitted.
             * @default null
             */
            user: string | null;
        };
        /** @description A link that signs in one browser, once. */
        Link: {
            url: string;
        };
        /** @description A workflow as a list has it. */
        ListedWorkflow: components["schemas"]["WorkflowSummary"] & {
            /** @description The parsed source, if `include` asks for it. */
            definition?: unknown;
            /** @description Its steps and edges, if `include` asks for them. */
            graph?: components["schemas"]["Graph"];
        };
        /** @enum {string} */
        LogLevel: "debug" | "info" | "warn" | "error";
        /** @description A line written by code. */
        LogLine: {
            level: components["schemas"]["LogLevel"];
            text: string;
        };
        /**
         * @description State of the connection; `absent` if this node is not configured to connect.
         * @enum {string}
         */
        McpServerState: "ready" | "connecting" | "down" | "absent";
        /** @description An MCP server whose tools steps can call, as seen by this node. */
        McpServer: {
            /** @description The name that the server reports. */
            about?: string | null;
            /**
             * Format: int32
             * @description How often this node has connected to it.
             */
            connections: number;
            name: string;
            next_attempt_at?: components["schemas"]["Instant"] | null;
            protocol?: string | null;
            state: components["schemas"]["McpServerState"];
            tools: components["schemas"]["McpTool"][];
            transport?: components["schemas"]["McpTransport"] | null;
            /** @description Why it is down. */
            why?: string | null;
        };
        McpTool: {
            accepted_at?: components["schemas"]["Instant"] | null;
            accepted_by?: string | null;
            accepted_description?: string | null;
            accepted_digest?: string | null;
            /** @description The server's hints: `readOnlyHint`, `idempotentHint`, … */
            annotations?: Record<string, never> | null;
            description?: string | null;
            /** @description Digest of the name, description, schemas and annotations offered now. */
            digest?: string | null;
            input_schema?: Record<string, never> | null;
            /** @description The name in steps, grants and policies; none if the server does not offer the tool now. */
            name?: string | null;
            output_schema?: Record<string, never> | null;
            standing: components["schemas"]["ToolStanding"];
            title?: string | null;
            /** @description The name on its server. */
            tool: string;
            /** @description Why it cannot be called. */
            why?: string | null;
        };
        /** @enum {string} */
        McpTransport: "stdio" | "http";
        /** @description The authenticated caller. */
        Me: {
            agent: boolean;
            /** @description What you may do with these credentials. */
            grants: string[];
            /** @description The id of your key; none in a browser session. */
            key?: string | null;
            organisation: components["schemas"]["Organisation"];
            user: string;
        };
        /** @enum {string} */
        Medium: "pushover" | "webhook" | "slack" | "ntfy" | "email";
        /**
         * @description What a notification is about. `test` is a test message.
         * @enum {string}
         */
        MessageTopic: "gate_opened" | "gate_escalated" | "gate_answered" | "gate_expired" | "run_failed" | "run_quarantined" | "test";
        /** @description The content of a notification. */
        Message: {
            /** @description Users who may answer. If empty, anyone with the right. */
            answerers?: string[];
            at: components["schemas"]["Instant"];
            event: components["schemas"]["MessageTopic"];
            /** @description What happens then: approve or deny. */
            on_timeout?: components["schemas"]["OnTimeout"];
            run_id: string;
            step?: string | null;
            /** @description The question of the gate, its answer, or why the run failed. */
            text: string;
            title: string;
            until?: components["schemas"]["Instant"] | null;
            workflow: string;
        };
        /**
         * @description Whether a policy has an effect. With `log`, what it would do is only counted.
         * @enum {string}
         */
        PolicyMode: "enforce" | "log";
        /** @description Which settings are required depends on the medium. */
        NewChannelRequest: {
            /** @description All events if omitted. */
            events?: components["schemas"]["Topic"][] | null;
            medium: components["schemas"]["Medium"];
            name: string;
            /** @description For the organisation, not for yourself. */
            organisation?: boolean;
            /** @description An email address. */
            to?: string | null;
            /** @description Pushover's application token, or ntfy's access token. */
            token?: string | null;
            /** @description Topic of ntfy. */
            topic?: string | null;
            /** @description URL of a webhook or of Slack, or of another server compatible with Pushover or ntfy. */
            url?: string | null;
            /** @description Pushover's user or group key. */
            user_key?: string | null;
        };
        /** @description A new channel. */
        NewChannel: components["schemas"]["Channel"] & {
            /** @description `whsec_…`: the key that signs calls of a webhook. Shown only here. */
            secret?: string | null;
        };
        NewKeyRequest: {
            /** @default false */
            agent: boolean;
            /** @default null */
            expires_at: components["schemas"]["Instant"] | null;
            /**
             * @description Restricts the user's grants; without a list the key has all of them.
             * @default null
             */
            grants: string[] | null;
            /** @default  */
            name: string;
            /**
             * @description You, if omitted.
             * @default null
             */
            user: string | null;
        };
        /** @description A new key. The key itself is shown only here. */
        NewKey: components["schemas"]["Key"] & {
            /** @description `sw_…`. */
            key: string;
        };
        NewOrganisationRequest: {
            name: string;
            plan?: string | null;
        };
        /** @description A new organisation with the key of its first user, `admin`. The key is shown only here. */
        NewOrganisation: components["schemas"]["Organisation"] & {
            admin_key: string;
        };
        /** @description A schedule to add: the fields of a `cron` trigger. */
        NewSchedule: {
            /** @description What to do with missed times; `last` if omitted. */
            catch_up?: components["schemas"]["CatchUp"];
            /** @description Such as `0 8 * * 1-5` or `@daily`. */
            cron: string;
            /** @description The input of each run; `{}` if omitted. */
            input?: unknown;
            /** @description While the run of an earlier time is unfinished; `allow` if omitted. */
            overlap?: components["schemas"]["Overlap"];
            /** @description UTC if omitted. */
            timezone?: string | null;
            /** @description What to do with a time that occurs twice. */
            when_repeated?: components["schemas"]["RepeatedTime"];
            /** @description What to do with a time that a clock change skips; `run` if omitted. */
            when_skipped?: components["schemas"]["SkippedTime"];
        };
        NewUserRequest: {
            grants?: string[];
            name: string;
            roles?: string[];
        };
        /** @description A process that executes steps. */
        Node: {
            /** @description `node_…`, new for every process. */
            id: string;
            joined_at: components["schemas"]["Instant"];
            /** @description The configured name. */
            name: string;
            /**
             * Format: int64
             * @description Time since its last heartbeat.
             */
            quiet_ms: number;
            /**
             * Format: int64
             * @description Attempts running now.
             */
            running: number;
            /**
             * Format: int32
             * @description Maximum number of concurrent attempts.
             */
            slots: number;
            /** @description Version of the program. */
            version: string;
        };
        /** @description A message to one channel and its delivery. */
        Notification: components["schemas"]["Message"] & {
            /** Format: int32 */
            attempts: number;
            /** @description The channel's id. */
            channel: string;
            channel_name: string;
            /** @description Why it was not delivered. */
            error?: string | null;
            finished_at?: components["schemas"]["Instant"] | null;
            /** @description Also the `webhook-id` of a call. */
            id: string;
            status: components["schemas"]["DeliveryStatus"];
            user?: string | null;
        };
        /** @enum {string} */
        OnTimeout: "approve" | "deny";
        Organisation: {
            /** Format: int64 */
            id: number;
            limits: components["schemas"]["Limits"];
            name: string;
            plan: string;
        };
        /**
         * @description What happens at a time of a schedule while the run of an earlier time is unfinished.
         * @enum {string}
         */
        Overlap: "allow" | "skip" | "cancel";
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Approval: {
            data: components["schemas"]["Approval"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Audit: {
            data: components["schemas"]["Audit"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_CatalogueTool: {
            data: components["schemas"]["CatalogueTool"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Channel: {
            data: components["schemas"]["Channel"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Connection: {
            data: components["schemas"]["Connection"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Event: {
            data: components["schemas"]["Event"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Key: {
            data: components["schemas"]["Key"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_ListedWorkflow: {
            data: components["schemas"]["ListedWorkflow"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_McpServer: {
            data: components["schemas"]["McpServer"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Node: {
            data: components["schemas"]["Node"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Notification: {
            data: components["schemas"]["Notification"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Organisation: {
            data: components["schemas"]["Organisation"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Policy: {
            data: components["schemas"]["Policy"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Query: {
            data: components["schemas"]["Query"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_ReviewSummary: {
            data: components["schemas"]["ReviewSummary"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Role: {
            data: components["schemas"]["Role"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_RunSummary: {
            data: components["schemas"]["RunSummary"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_ScheduleSummary: {
            data: components["schemas"]["ScheduleSummary"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Secret: {
            data: components["schemas"]["Secret"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_StepOfRun: {
            data: components["schemas"]["StepOfRun"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_String: {
            data: string[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_User: {
            data: components["schemas"]["User"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Version: {
            data: components["schemas"]["Version"][];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_WorkflowTool: {
            data: components["schemas"]["WorkflowTool"][];
            next?: string | null;
        };
        ParentStep: {
            run_id: string;
            step: string;
        };
        /** @description The runs to hold or release. */
        PauseRequest: {
            /** @description Only runs with this concurrency key; all runs if omitted. */
            key?: unknown;
        };
        PausedKey: {
            by: string;
            key: unknown;
            since: components["schemas"]["Instant"];
        };
        /** @description Another plan, or custom limits in place of a plan's. */
        PlanRequest: {
            /** @default null */
            limits: components["schemas"]["Limits"] | null;
            /** @default null */
            plan: string | null;
        };
        PolicyCounts: {
            /**
             * Format: int64
             * @description Calls that it matches and lets through.
             */
            allowed: number;
            /**
             * Format: int64
             * @description Calls over the rate.
             */
            delayed: number;
            /** Format: int64 */
            denied: number;
            /**
             * Format: int64
             * @description Calls that would have waited for an approval.
             */
            held: number;
            /**
             * Format: int64
             * @description Calls on which its condition could not be decided, so that it counted as met.
             */
            undecided: number;
        };
        /** @description What a policy in the mode `log` would have done since it was set. */
        PolicyLog: {
            counts: components["schemas"]["PolicyCounts"];
            /** @description The newest calls that it would have stopped, newest first; at most 20. */
            samples: components["schemas"]["PolicySample"][];
        };
        /** @description An organisation's rule for calls. Applies regardless of the workflow. */
        PolicyRequest: {
            /** @description Whether an approver may change the arguments of the call. */
            allow_changes?: boolean;
            /** @description Whether the user who started the run may approve. */
            allow_self?: boolean;
            /**
             * Format: int32
             * @description Number of approvals required.
             */
            approvals?: number;
            /** @description Users or roles whose approval counts; if empty, anyone who may approve. */
            approvers?: string[];
            /** @description A tool call that may have happened is not repeated, unless the tool declares itself idempotent. */
            at_most_once?: components["schemas"]["UnknownOutcome"];
            /**
             * @description The calls it applies to: `tool:PATTERN`, `host:PATTERN` or `connection:PATTERN`; `unreviewed:WORKFLOW` are calls
             *     with side effects in runs of a version that an agent wrote and no person has accepted.
             */
            calls: string;
            effect: components["schemas"]["PolicyEffect"];
            /** @description Calls that it does not apply to, in the same form. */
            except?: string[];
            mode?: components["schemas"]["PolicyMode"];
            rate?: components["schemas"]["Rate"];
            /** @description Explanation for the people it stops. */
            reason?: string | null;
            timeout?: components["schemas"]["Length"] | null;
            /**
             * @description A condition that the call must meet, over `args`, `caller`, `time`, `workflow`, `reviewed`, `tool`, `host` and
             *     `connection`: `args.amount > 500 && caller.agent`. If it cannot be decided, it counts as met.
             */
            when?: string | null;
        };
        /** @description A call that a policy stops. */
        PolicySample: {
            /** @description The arguments as JSON, without secrets, cut off after 1,000 bytes. */
            args: string;
            at: components["schemas"]["Instant"];
            /** @description What is called: `tool pay`. */
            call: string;
            run?: string | null;
            step?: string | null;
            /** @description Why the condition could not be decided. */
            undecided?: string | null;
            /** @description The user who started the run. */
            user?: string | null;
            verdict: components["schemas"]["PolicyVerdict"];
            workflow?: string | null;
        };
        /** @description Policies to try on the calls of past runs. */
        PolicyTestRequest: {
            /** @description The policies by name; by default those that are set. */
            policies?: {
                [key: string]: components["schemas"]["PolicyRequest"];
            };
            /** @description How far back the runs were created: 7d by default, at most 90d. */
            since?: components["schemas"]["Length"];
        };
        /** @description What policies would have done with past calls. */
        PolicyTest: {
            /** Format: int64 */
            calls: number;
            /** @description What all policies together would have done: each call counts once, with the strongest effect. */
            counts: components["schemas"]["PolicyCounts"];
            /**
             * Format: int64
             * @description Runs whose payloads were erased: their calls are not known.
             */
            erased: number;
            /** @description False if there are more runs or calls than one test looks at: the newest 2,000 and 20,000. */
            is_complete: boolean;
            policies: components["schemas"]["TriedPolicy"][];
            /** Format: int64 */
            runs: number;
            since: components["schemas"]["Instant"];
        };
        /** @enum {string} */
        PolicyVerdict: "denied" | "held" | "delayed" | "allowed";
        Policy: {
            allow_changes?: boolean;
            allow_self: boolean;
            /** Format: int32 */
            approvals: number;
            approvers: string[];
            at_most_once?: components["schemas"]["UnknownOutcome"] | null;
            calls: string;
            created_at: components["schemas"]["Instant"];
            created_by: string;
            effect: components["schemas"]["PolicyEffect"];
            except?: string[];
            mode?: components["schemas"]["PolicyMode"];
            name: string;
            rate?: components["schemas"]["Rate"] | null;
            reason?: string | null;
            timeout?: components["schemas"]["Length"] | null;
            when?: string | null;
        };
        /** @description Which events you are notified of, and where. Only the given fields are changed. */
        Preferences: {
            /**
             * @description In a connected browser.
             * @default null
             */
            browser: components["schemas"]["Topic"][] | null;
            /**
             * @description By the id of the channel.
             * @default {}
             */
            channels: {
                [key: string]: components["schemas"]["Topic"][];
            };
        };
        /** @description An error, for programs (`code`) and for people (`detail`). */
        Problem: {
            code: components["schemas"]["ProblemCode"];
            detail: string;
            /** @description Everything wrong with the request, if the input was invalid. */
            errors?: components["schemas"]["Fault"][];
            /** @description Identifies the request in the log. */
            request_id?: string | null;
            /** Format: int32 */
            status: number;
            /** @description The current status of the run, if it no longer allows the request. */
            status_now?: components["schemas"]["RunStatus"];
            title: string;
            /** @description Link to the documentation of the code. */
            type: string;
            /** @description What is suspicious in a definition beside its errors. */
            warnings?: components["schemas"]["Fault"][];
        };
        /** @description The content of a saved query. */
        QueryRequest: {
            /** @description The name of a connection. */
            connection: string;
            params?: {
                [key: string]: unknown;
            };
            /** Format: int32 */
            rows?: number | null;
            /** @description One statement, with `:name` or `$1` as parameters. */
            sql: string;
            write?: boolean;
        };
        /** @description A statement that query steps use by name. */
        Query: {
            changed_at: components["schemas"]["Instant"];
            changed_by: string;
            connection: string;
            created_at: components["schemas"]["Instant"];
            id: string;
            name: string;
            /** @description Default values of named parameters. */
            params: {
                [key: string]: unknown;
            };
            /**
             * Format: int32
             * @description Maximum number of rows, unless the step sets one.
             */
            rows?: number | null;
            sql: string;
            /** @description Whether it writes. */
            write: boolean;
        };
        /** @description What a gate or a held call asks. Of a verdict: the input of the call, with fields of its own. */
        Question: {
            /** @description Whether an approval may change the call. */
            allow_changes?: boolean;
            /** @description Whether the user who started the run may answer. */
            allow_self?: boolean;
            /** @description Users or roles who may answer; if there are none, everyone with the right. */
            approvers?: string[];
            asked_at?: components["schemas"]["Instant"];
            /** @description The calls that an approval allows. */
            calls?: components["schemas"]["AskedCall"][];
            /** @description What the call was before approvers changed it, oldest first. */
            changed?: components["schemas"]["EarlierCall"][];
            digest?: string;
            /** @description Users or roles who may answer as well once it has escalated. */
            escalate_to?: string[];
            /** @description JSON Schema of the data to give with an approval. */
            form?: components["schemas"]["Form"];
            message?: string;
            /**
             * Format: int32
             * @description Number of further calls, which are not covered.
             */
            more_calls?: number;
            /** Format: int32 */
            more_on_denial?: number;
            /** @description The calls that may follow a denial. */
            on_denial?: components["schemas"]["AskedCall"][];
            /** @description What happens without an answer in time. */
            on_timeout?: components["schemas"]["OnTimeout"];
            /** @description The policy that holds the call. */
            policy?: string;
            /** @description The MCP server that asks. */
            server?: string;
            /** @description The tool that asks. */
            tool?: string;
        };
        /** @description A number of calls in a period. */
        Rate: {
            /** Format: int32 */
            calls: number;
            per: components["schemas"]["Length"];
        };
        /** @description The response to an accepted call. */
        Received: {
            received: boolean;
        };
        /**
         * @description How a run on virtual time ended; `unfinished` if it took too many events.
         * @enum {string}
         */
        RehearsalStatus: "completed" | "failed" | "cancelled" | "timeout" | "unfinished";
        /**
         * @description What happens to a time that a clock change repeats.
         * @enum {string}
         */
        RepeatedTime: "once" | "twice";
        /** @description What a retry would keep. */
        RetryPreview: {
            /** @description Steps that would run again; those inside a loop that is only continued, by path. */
            again: string[];
            /** @description Steps whose results are kept. */
            stands: string[];
        };
        RetryRequest: {
            /**
             * @description Continue under the newest version of the workflow instead of the run's own.
             * @default false
             */
            newest: boolean;
        };
        /** @description A review with all that an answer is about. */
        ReviewDetail: components["schemas"]["ReviewSummary"] & {
            /**
             * Format: int32
             * @description The accepted version that it is compared with.
             */
            base?: number | null;
            /** @description The source of that version. */
            before?: string | null;
            /** @description A unified diff of the two. */
            diff: string;
            /** @description Of everything below. An answer must carry it. */
            digest: string;
            new: components["schemas"]["Uses"];
            /** @description Whether a person can answer it now. */
            open: boolean;
            /** @description The policies that apply to its steps, as far as that is known before a run. */
            policies: string[];
            simulation: components["schemas"]["Simulation"];
            /** @description What the agent wrote. */
            source: string;
            steps: components["schemas"]["StepChanges"];
        };
        /** @description An answer to a review. */
        ReviewRequest: {
            /** @description For the agent that wrote it. */
            comment?: string | null;
            /** @description Of the review as it was shown. */
            digest: string;
            /** @description Accepts the version for this run only. */
            run?: string | null;
        };
        /**
         * @description `unreviewed` and `proposed` await a person: a version that is current, and one that is not.
         * @enum {string}
         */
        ReviewState: "unreviewed" | "proposed" | "accepted" | "refused";
        /** @description A version or a proposal that an agent's key wrote. */
        ReviewSummary: {
            answered_at?: components["schemas"]["Instant"] | null;
            answered_by?: string | null;
            /** @description Name and version of the MCP client. */
            client?: string | null;
            /** @description What the person who answered says to the agent. */
            comment?: string | null;
            id: string;
            /** @description The name of the key. */
            key?: string | null;
            /** @description Why, in the agent's words. */
            reason?: string | null;
            /** @description The runs that it was accepted for. */
            runs?: string[];
            state: components["schemas"]["ReviewState"];
            /**
             * Format: int32
             * @description Its version; none for a proposal, which becomes a version when a person accepts it.
             */
            version?: number | null;
            workflow: string;
            workflow_id: string;
            written_at: components["schemas"]["Instant"];
            /** @description The user whose key wrote it. */
            written_by: string;
        };
        RoleRequest: {
            grants: string[];
        };
        Role: {
            /** @description Built in; cannot be changed. */
            built_in: boolean;
            grants: string[];
            name: string;
        };
        /** @description The result of a master key rotation. */
        Rotated: {
            /** @description The master key that now seals everything. */
            key: string;
            /** @description Records that no key of this node opens, and why. */
            locked: string[];
            /**
             * Format: int64
             * @description Secrets and connections that another key sealed before.
             */
            sealed: number;
        };
        /**
         * @description A run in full.
         * @example {
         *       "run_id": "run_01k3v6x0x8f7m2",
         *       "id": "run_01k3v6x0x8f7m2",
         *       "workflow_id": "wf_01k3v6wq4n9c1d",
         *       "workflow": "hello",
         *       "workflow_version": 2,
         *       "status": "completed",
         *       "created_by": "ann",
         *       "created_at": "2026-02-22T10:00:00.000Z",
         *       "started_at": "2026-02-22T10:00:00.002Z",
         *       "finished_at": "2026-02-22T10:00:00.009Z",
         *       "labels": {
         *         "team": "sales"
         *       },
         *       "input": {
         *         "name": "Ann"
         *       },
         *       "output": "Hello, Ann!",
         *       "error": null,
         *       "waiting_for": [],
         *       "tasks": {
         *         "greet": {
         *           "id": "step_01k3v6x0x8f7m2_Z3JlZXQ",
         *           "kind": "tool",
         *           "status": "success",
         *           "attempt": 1,
         *           "duration_ms": 3,
         *           "started_at": "2026-02-22T10:00:00.003Z",
         *           "finished_at": "2026-02-22T10:00:00.006Z",
         *           "input": {
         *             "tool": "echo",
         *             "args": {
         *               "text": "Hello, Ann!"
         *             }
         *           },
         *           "output": {
         *             "body": {
         *               "text": "Hello, Ann!"
         *             }
         *           },
         *           "error": null
         *         }
         *       },
         *       "generation": 0,
         *       "version": 4
         *     }
         */
        Run: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            erased_at?: components["schemas"]["Instant"] | null;
            error?: components["schemas"]["StepError"] | null;
            /** @description When it times out, or would have: `max_duration` after its start or its last retry. */
            expires_at?: components["schemas"]["Instant"];
            finished_at?: components["schemas"]["Instant"] | null;
            /**
             * Format: int32
             * @description Increases with each retry of the run.
             */
            generation: number;
            /**
             * @deprecated
             * @description The same as `run_id`.
             */
            id: string;
            input: unknown;
            labels: {
                [key: string]: string;
            };
            output?: unknown;
            /** @description The step of another run that started it, as long as that run exists. */
            parent?: components["schemas"]["ParentStep"];
            /** @description The user who retried it last. */
            retried_by?: string;
            run_id: string;
            /** @description When it begins or began, if it was scheduled. */
            scheduled_for?: components["schemas"]["Instant"];
            started_at?: components["schemas"]["Instant"] | null;
            /** @description Who or what started it. */
            started_by?: components["schemas"]["StartedBy"];
            status: components["schemas"]["RunStatus"];
            /** @description By name; steps inside loops by path, such as `each[3].charge`. */
            tasks: {
                [key: string]: components["schemas"]["Step"];
            };
            /** @description The cursor of the further steps in `GET /runs/{run}/steps`: `tasks` has the first 1,000. */
            tasks_next?: string;
            test?: boolean;
            /**
             * Format: int64
             * @description Increases with every change of the run.
             */
            version: number;
            /** @description What an unfinished run waits for; empty if it has finished. */
            waiting_for: components["schemas"]["Waiting"][];
            /** @description Why its open approvals may not reach anyone who can answer them. */
            warnings?: components["schemas"]["Warning"][];
            workflow: string;
            /** @description The workflow was deleted since. */
            workflow_deleted_at?: components["schemas"]["Instant"];
            workflow_id: string;
            /** Format: int32 */
            workflow_version: number;
        };
        /** @description Filters for runs, newest first. */
        RunFilters: {
            /**
             * @description The user who started it.
             * @default null
             */
            created_by: string | null;
            /**
             * @description `next` of the previous page.
             * @default null
             */
            cursor: string | null;
            /**
             * @description `name=value`; a run must have all of several separated by commas.
             * @default null
             */
            label: string | null;
            /**
             * Format: int32
             * @description Maximum number of entries; 50 by default.
             * @default null
             */
            limit: number | null;
            /**
             * @description Started by steps of this run.
             * @default null
             */
            parent: string | null;
            /**
             * @description Part of the id, of the creator's name or of a label.
             * @default null
             */
            q: string | null;
            /** @default null */
            since: components["schemas"]["Instant"] | null;
            /**
             * @description One status, or several separated by commas.
             * @default null
             */
            status: string | null;
            /**
             * @description Test runs in place of real ones.
             * @default null
             */
            tests: boolean | null;
            /** @default null */
            until: components["schemas"]["Instant"] | null;
            /**
             * @description By name or id.
             * @default null
             */
            workflow: string | null;
        };
        /** @description The state of a run as canvases and widgets read it. */
        RunState: {
            /** @description The results of steps by their `outputVariable` and, in `nodes`, by path; the run's `input`, `output` and `error`. */
            contextData: unknown;
            /** @description Id of the run. */
            instanceID: string;
            status: components["schemas"]["RunStatus"];
        };
        /**
         * @description Status of a run. `completed`, `failed`, `cancelled` and `timeout` are final.
         * @enum {string}
         */
        RunStatus: "scheduled" | "queued" | "running" | "paused" | "completed" | "failed" | "cancelled" | "timeout";
        /**
         * @description A run as lists show it.
         * @example {
         *       "run_id": "run_01k3v6x0x8f7m2",
         *       "id": "run_01k3v6x0x8f7m2",
         *       "workflow_id": "wf_01k3v6wq4n9c1d",
         *       "workflow": "hello",
         *       "workflow_version": 2,
         *       "status": "completed",
         *       "created_by": "ann",
         *       "created_at": "2026-02-22T10:00:00.000Z",
         *       "started_at": "2026-02-22T10:00:00.002Z",
         *       "finished_at": "2026-02-22T10:00:00.009Z",
         *       "labels": {
         *         "team": "sales"
         *       },
         *       "child": false
         *     }
         */
        RunSummary: {
            /** @description Started by a step of another run. */
            child: boolean;
            created_at: components["schemas"]["Instant"];
            created_by: string;
            finished_at?: components["schemas"]["Instant"] | null;
            /**
             * @deprecated
             * @description The same as `run_id`.
             */
            id: string;
            labels: {
                [key: string]: string;
            };
            run_id: string;
            /** @description When a scheduled run begins. */
            scheduled_for?: components["schemas"]["Instant"];
            started_at?: components["schemas"]["Instant"] | null;
            status: components["schemas"]["RunStatus"];
            workflow: string;
            /** @description The workflow was deleted since. */
            workflow_deleted_at?: components["schemas"]["Instant"];
            workflow_id: string;
            /** Format: int32 */
            workflow_version: number;
        };
        /**
         * @description A schedule and its next ticks.
         * @example {
         *       "id": "schedule_01k3v6z2",
         *       "workflow": "hello",
         *       "cron": "0 8 * * 1-5",
         *       "timezone": "Europe/Paris",
         *       "next": [
         *         "2026-02-23T07:00:00.000Z"
         *       ],
         *       "last": "2026-02-20T07:00:00.000Z",
         *       "last_run_id": "run_01k3t2c0x8f7m2"
         *     }
         */
        ScheduleSummary: {
            /** @description The user who added it with a request, and whose rights its runs have. Missing for triggers of the definition. */
            by?: string;
            /** @description None for a one-time schedule. */
            cron?: string | null;
            id: string;
            last?: components["schemas"]["Instant"] | null;
            /** @description Why the last tick started no run. */
            last_error?: string | null;
            last_run_id?: string | null;
            /** @description Up to ten. */
            next: components["schemas"]["Instant"][];
            timezone?: string | null;
            workflow: string;
        };
        /** @description The content of a secret. Omitted fields keep their value. */
        SecretRequest: {
            /**
             * @description Hosts it may be sent to, such as `api.example.com` or `*.example.org`; an empty list allows any host.
             * @default null
             */
            hosts: string[] | null;
            /**
             * @description Required for a new secret.
             * @default null
             */
            value: string | null;
        };
        /**
         * @description A secret. Its value is never shown.
         * @example {
         *       "id": "secret_01k3v6y8",
         *       "name": "PAY_KEY",
         *       "hosts": [
         *         "api.example.com"
         *       ],
         *       "version": 2,
         *       "masked": true,
         *       "sealed_with": "1f0c",
         *       "created_at": "2026-01-05T12:00:00.000Z",
         *       "changed_at": "2026-02-05T12:00:00.000Z",
         *       "changed_by": "ann"
         *     }
         */
        Secret: {
            changed_at: components["schemas"]["Instant"];
            changed_by: string;
            created_at: components["schemas"]["Instant"];
            /** @description Hosts it may be sent to; any host if empty. */
            hosts: string[];
            id: string;
            /** @description Whether it is masked in responses of services. Values shorter than 8 characters are not. */
            masked: boolean;
            name: string;
            /** @description The master key that seals it. */
            sealed_with: string;
            /**
             * Format: int32
             * @description Number of values it has had.
             */
            version: number;
        };
        /** @description A run in which calls succeed with made-up results and gates are approved. */
        Simulation: {
            error?: string | null;
            /** @description How it ended. */
            status: components["schemas"]["RehearsalStatus"];
            /** @description What was called or asked, in order. */
            steps: string[];
        };
        /**
         * @description What happens to a time that a clock change skips.
         * @enum {string}
         */
        SkippedTime: "run" | "skip";
        /** @description Who or what started a run. */
        StartedBy: {
            /** @description What the MCP client calls itself. */
            client?: string;
            how: components["schemas"]["StartedHow"];
            /** @description The API key that was used, if any. */
            key?: components["schemas"]["StartedWith"];
            /** @description Id of the schedule. */
            schedule?: string;
            user: string;
        };
        /**
         * @description How a run was started. `run` is a step of another run.
         * @enum {string}
         */
        StartedHow: "request" | "schedule" | "webhook" | "run" | "test";
        /** @description The key that started a run. */
        StartedWith: {
            /** @description It is an agent's key. */
            agent: boolean;
            id: string;
            name?: string;
        };
        /**
         * @example {
         *       "id": "step_01k3v6x0x8f7m2_Z3JlZXQ",
         *       "kind": "tool",
         *       "status": "success",
         *       "attempt": 1,
         *       "duration_ms": 3,
         *       "started_at": "2026-02-22T10:00:00.003Z",
         *       "finished_at": "2026-02-22T10:00:00.006Z",
         *       "input": {
         *         "tool": "echo",
         *         "args": {
         *           "text": "Hello, Ann!"
         *         }
         *       },
         *       "output": {
         *         "body": {
         *           "text": "Hello, Ann!"
         *         }
         *       },
         *       "error": null
         *     }
         */
        Step: {
            /** @description Who has approved a call that a policy held. The answers to a gate are in its output. */
            approvals?: components["schemas"]["GivenApproval"][];
            /** Format: int32 */
            attempt: number;
            /** @description All attempts, oldest first; only if there were several. */
            attempts?: components["schemas"]["Attempt"][];
            /** @description The URL that ends its wait; only for callers who may deliver. */
            callback_url?: string;
            /** @description An approver changed the held call: `input` is what it was made with. */
            changed?: components["schemas"]["ChangedCall"];
            /** @description The run that its last attempt started. */
            child_run_id?: string;
            /** Format: int64 */
            duration_ms?: number | null;
            error?: components["schemas"]["StepError"] | null;
            finished_at?: components["schemas"]["Instant"] | null;
            /** @description Headers of the response. */
            headers?: {
                [key: string]: string;
            };
            /** @description For `POST /api/v1/steps/{id}/ready`. */
            id: string;
            input?: unknown;
            /**
             * @description Its input, output, log and the results of its attempts are left out, because the answer would be too large:
             *     `GET /runs/{run}/steps` has them.
             */
            is_omitted?: boolean;
            /** @description The output was longer than 256 KB and is stored truncated. */
            is_truncated?: boolean;
            kind: components["schemas"]["StepKind"];
            /** @description The lines that the step's code wrote with `console`. */
            log?: components["schemas"]["LogLine"][];
            output?: unknown;
            started_at?: components["schemas"]["Instant"] | null;
            status: components["schemas"]["StepStatus"];
            /** Format: int32 */
            status_code?: number | null;
        };
        /** @description Steps by their paths. */
        StepChanges: {
            added: string[];
            changed: string[];
            removed: string[];
        };
        /**
         * @description Kind of a step. `start` is only in graphs.
         * @enum {string}
         */
        StepKind: "start" | "http" | "tool" | "javascript" | "query" | "pass" | "condition" | "end" | "sleep" | "wait_for_webhook" | "approval" | "workflow" | "for_each" | "loop";
        /** @description A step of a run, with its path. */
        StepOfRun: components["schemas"]["Step"] & {
            /** @description Such as `each[3].charge`. */
            path: string;
        };
        /**
         * @description Status of a step.
         * @enum {string}
         */
        StepStatus: "pending" | "running" | "sleeping" | "waiting" | "success" | "failed" | "timeout" | "denied" | "template_error" | "skipped" | "cancelled";
        /** @description A step of the definition. */
        Task: {
            kind: components["schemas"]["StepKind"];
            /** @description Steps that lead to it. */
            needs: string[];
        };
        /** @description An unsaved definition and its input. */
        TestRequest: {
            /** @description The definition: an object, or its text in JSON or YAML. */
            definition: unknown;
            input?: unknown;
        };
        /** @description Whether a message was delivered. */
        TestResult: {
            arrived: boolean;
            error?: string | null;
        };
        /**
         * @description `changed` and `new` are held until a person accepts them; `held` cannot be called at all; `missing` is not
         *     offered now.
         * @enum {string}
         */
        ToolStanding: "accepted" | "changed" | "new" | "held" | "missing";
        /**
         * @description Events that people can be notified of.
         * @enum {string}
         */
        Topic: "gate_opened" | "gate_escalated" | "gate_answered" | "gate_expired" | "run_failed";
        TriedPolicy: {
            counts: components["schemas"]["PolicyCounts"];
            name: string;
            /** @description The newest calls that it would have stopped, newest first; at most 20. */
            samples: components["schemas"]["PolicySample"][];
        };
        /**
         * @description How a workflow is started.
         * @enum {string}
         */
        TriggerKind: "api" | "webhook" | "cron" | "at";
        /**
         * @description A run that was just started: the fields of a `Run` that are known at once, under the same names.
         * @example {
         *       "run_id": "run_01k3v6x0x8f7m2",
         *       "workflow_id": "wf_01k3v6wq4n9c1d",
         *       "workflow": "hello",
         *       "workflow_version": 2,
         *       "status": "running",
         *       "started_at": "2026-02-22T10:00:00.002Z"
         *     }
         */
        Triggered: {
            run_id: string;
            /** @description When a scheduled run begins. */
            scheduled_for?: components["schemas"]["Instant"];
            started_at?: components["schemas"]["Instant"];
            status: components["schemas"]["RunStatus"];
            workflow: string;
            workflow_id: string;
            /** Format: int32 */
            workflow_version: number;
        };
        /**
         * @description What to do if it is unknown whether a call was made.
         * @enum {string}
         */
        UnknownOutcome: "fail" | "ask";
        Usage: {
            /**
             * Format: int64
             * @description Steps executed in this month.
             */
            executions: number;
            /** @description For example `2026-11`. */
            month: string;
            /**
             * Format: int64
             * @description Runs that have not ended.
             */
            open_runs: number;
            organisation: components["schemas"]["Organisation"];
            /** Format: int64 */
            workflows: number;
        };
        /** @description Only the given fields are changed. */
        UserChangeRequest: {
            /** @default null */
            disabled: boolean | null;
            /** @default null */
            grants: string[] | null;
            /** @default null */
            roles: string[] | null;
        };
        /**
         * @example {
         *       "id": "user_01k3v6p1",
         *       "name": "ann",
         *       "roles": [
         *         "operator"
         *       ],
         *       "grants": [],
         *       "disabled": false,
         *       "created_at": "2026-01-05T12:00:00.000Z",
         *       "created_by": "admin"
         *     }
         */
        User: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            disabled: boolean;
            /** @description In addition to the grants of the roles. */
            grants: string[];
            id: string;
            name: string;
            roles: string[];
        };
        /** @description What the definition uses and the accepted version does not. `(computed)` is known in a run only. */
        Uses: {
            connections: string[];
            hosts: string[];
            secrets: string[];
            tools: string[];
            /** @description Child workflows. */
            workflows: string[];
        };
        /** @enum {string} */
        VerdictChoice: "happened" | "run_again" | "fail";
        /** @description A person's verdict on a call that may have happened and must not be repeated. */
        VerdictRequest: {
            /** @description The result of the call, if it happened. */
            output?: unknown;
            verdict: components["schemas"]["VerdictChoice"];
        };
        /** @description One version of a workflow. */
        Version: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            /** @description As its author wrote it, JSON or YAML. */
            source: string;
            /** Format: int32 */
            version: number;
        };
        Waiting: {
            for: components["schemas"]["WaitingReason"];
            /** @description Why the last attempt failed, or what the called service says about its progress. */
            message?: string | null;
            /** @description Who or what can make it continue. */
            moved_on_by: string;
            since?: components["schemas"]["Instant"] | null;
            /** @description Path of the step; empty for the run itself. */
            step: string;
            until?: components["schemas"]["Instant"] | null;
        };
        /**
         * @description What a run or a step waits for. `start` is the time of a scheduled run, `turn` is the next transition of the run;
         *     `quarantine` ends when a person releases or cancels the run; `unreadable` when one cancels it.
         * @enum {string}
         */
        WaitingReason: "start" | "queue" | "executor" | "retry" | "sleep" | "webhook" | "approval" | "verdict" | "child" | "turn" | "quarantine" | "unreadable";
        /** @description A problem that does not stop the run. */
        Warning: {
            message: string;
            /** @description Path of the step. */
            step: string;
        };
        /** @description What is suspicious in a definition that is valid. */
        CheckResult: {
            warnings: components["schemas"]["Fault"][];
        };
        /** @description A workflow with its definition. */
        Workflow: components["schemas"]["WorkflowSummary"] & {
            /** @description The parsed source. */
            definition: unknown;
            dialect: components["schemas"]["Dialect"];
            input_schema?: unknown;
            /** @description Concurrency keys whose new runs wait. */
            paused_keys?: components["schemas"]["PausedKey"][];
            /** @description As its author wrote it, JSON or YAML. */
            source: string;
            /** @description By name, for any dialect. */
            steps: {
                [key: string]: components["schemas"]["Task"];
            };
            /** @description Its tasks as written, if it uses the tasks dialect. */
            tasks?: unknown;
            /** @description URLs that start it; only for callers who may change it. */
            webhooks?: string[];
        };
        /**
         * @description A workflow as lists show it.
         * @example {
         *       "id": "wf_01k3v6wq4n9c1d",
         *       "name": "hello",
         *       "trigger": "cron",
         *       "triggers": [
         *         "cron"
         *       ],
         *       "task_count": 1,
         *       "enabled": true,
         *       "paused": false,
         *       "version": 2,
         *       "labels": {
         *         "team": "sales"
         *       },
         *       "created_by": "ann",
         *       "inserted_at": "2026-02-20T09:30:00.000Z",
         *       "updated_at": "2026-02-21T16:05:00.000Z"
         *     }
         */
        WorkflowSummary: {
            created_by: string;
            /** @description Deleted workflows can be restored. */
            deleted_at?: components["schemas"]["Instant"];
            description?: string | null;
            /** @description Of a new workflow: the one of the same name that was deleted last. */
            earlier?: components["schemas"]["EarlierWorkflow"];
            enabled: boolean;
            id: string;
            /** @description When its first version was stored. */
            inserted_at: components["schemas"]["Instant"];
            labels: {
                [key: string]: string;
            };
            name: string;
            /** @description Whether new runs wait until it is resumed. */
            paused: boolean;
            /** @description The set of definitions that it belongs to, if it was applied as a part of one. */
            set?: string | null;
            /** Format: int32 */
            task_count: number;
            /** @description The first of `triggers`. */
            trigger: components["schemas"]["TriggerKind"];
            triggers: components["schemas"]["TriggerKind"][];
            /** @description When this version was stored. */
            updated_at: components["schemas"]["Instant"];
            /** Format: int32 */
            version: number;
        };
        /** @description Settings that can change without a new version. */
        WorkflowSwitch: {
            /** @default null */
            enabled: boolean | null;
            /**
             * @description The set of definitions that it belongs to; empty for none.
             * @default null
             */
            set: string | null;
        };
        /**
         * @description `unreviewed` or `refused` if an agent defined the version and no person has accepted it; `held` if the name belongs
         *     to another tool.
         * @enum {string}
         */
        WorkflowToolStanding: "accepted" | "unreviewed" | "refused" | "held";
        /** @description A workflow that is exposed as a tool. */
        WorkflowTool: {
            /** @description Who defined that version. */
            defined_by: string;
            description?: string | null;
            input_schema?: Record<string, never> | null;
            /** @description The name of the tool. */
            name: string;
            /** @description Whether agents are offered it: accepted, and the workflow enabled. */
            offered: boolean;
            standing: components["schemas"]["WorkflowToolStanding"];
            /**
             * Format: int32
             * @description Its newest version.
             */
            version: number;
            /** @description Why it is held. */
            why?: string | null;
            /** @description The name of the workflow. */
            workflow: string;
            workflow_id: string;
        };
        /** @description The run was created */
        CreatedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "created";
            /**
             * Format: int64
             * @description Number of a payload
             */
            input: number;
            /**
             * Format: int64
             * @description Number of a payload
             */
            headers?: number;
            /**
             * Format: int64
             * @description Number of a payload
             */
            query?: number;
            by: string;
            client?: string;
            /** Format: int64 */
            seed: number;
            /** Format: int64 */
            max_duration_ms: number;
        };
        /** @description The run begins at `due` */
        ScheduledEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "scheduled";
            due: components["schemas"]["Instant"];
        };
        /** @description The time of a scheduled run has come */
        DueEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "due";
        };
        /** @description The run left the queue */
        StartedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "started";
            expires: components["schemas"]["Instant"];
            /**
             * Format: int64
             * @description Number of a payload
             */
            vars?: number;
        };
        /** @description The step was entered and waits for something */
        EnteredEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "entered";
            step: string;
            /** Format: int64 */
            attempt: number;
            /**
             * Format: int64
             * @description Number of a payload
             */
            input?: number;
            wait: components["schemas"]["WaitKind"];
            until?: null | components["schemas"]["Instant"];
            escalate?: null | components["schemas"]["Instant"];
            /** Format: int64 */
            count?: number | null;
        };
        /** @description An attempt ended without success; another follows at `due` */
        RetryingEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "retrying";
            step: string;
            /** Format: int64 */
            attempt: number;
            due: components["schemas"]["Instant"];
            failure: components["schemas"]["EventFailure"];
            output?: components["schemas"]["EventOutput"];
            /**
             * Format: int64
             * @description Number of a payload
             */
            note?: number;
        };
        /** @description Another attempt begins */
        AgainEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "again";
            step: string;
            /** Format: int64 */
            attempt: number;
            reason: components["schemas"]["AgainReason"];
            until?: components["schemas"]["Instant"];
        };
        /** @description The call is not made, or does not continue, until someone approves it */
        HeldEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "held";
            step: string;
            /** Format: int64 */
            attempt: number;
            /**
             * Format: int64
             * @description Number of a payload
             */
            ask: number;
            until?: components["schemas"]["Instant"];
            /**
             * Format: int64
             * @description Number of a payload
             */
            note?: number;
        };
        /** @description Whether the call happened is unknown; a person decides */
        UnsureEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "unsure";
            step: string;
            /** Format: int64 */
            attempt: number;
        };
        /** @description A loop started a pass, or a for_each an item */
        OpenedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "opened";
            step: string;
            /** Format: int64 */
            index: number;
        };
        /** @description A pass or an item ended */
        ClosedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "closed";
            step: string;
            /** Format: int64 */
            index: number;
            end: components["schemas"]["EndStatus"];
            /**
             * Format: int64
             * @description Number of a payload
             */
            result?: number;
        };
        /** @description The step ended */
        FinishedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "finished";
            step: string;
            /** Format: int64 */
            attempt: number;
            status: components["schemas"]["StepStatus"];
            exit: string;
            output?: components["schemas"]["EventOutput"];
            /**
             * Format: int64
             * @description Number of a payload
             */
            variable?: number;
            failure?: components["schemas"]["EventFailure"];
        };
        /** @description The step was skipped */
        SkippedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "skipped";
            step: string;
            exit: string;
            reason: components["schemas"]["SkipReason"];
        };
        /** @description A message arrived before its step was entered */
        KeptEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "kept";
            step: string;
            /**
             * Format: int64
             * @description Number of a payload
             */
            message: number;
            truncated?: boolean;
        };
        /** @description One of several people approved */
        ApprovedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "approved";
            step: string;
            by: string;
            /**
             * Format: int64
             * @description Number of a payload
             */
            answer: number;
        };
        /** @description An approver changed a held call; the request is a new one */
        ChangedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "changed";
            step: string;
            by: string;
            /**
             * Format: int64
             * @description Number of a payload
             */
            ask: number;
            /**
             * Format: int64
             * @description Number of a payload
             */
            input: number;
        };
        /** @description The gate asks further people */
        EscalatedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "escalated";
            step: string;
            until?: components["schemas"]["Instant"];
        };
        /** @description A user set the result of the step */
        OverriddenEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "overridden";
            step: string;
            /** Format: int64 */
            attempt: number;
            by: string;
            comment?: string;
        };
        /** @description The run ended */
        EndedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "ended";
            status: components["schemas"]["RunStatus"];
            /**
             * Format: int64
             * @description Number of a payload
             */
            output?: number;
            failure?: components["schemas"]["EventFailure"];
            by?: string;
        };
        /** @description The run continues after its end */
        RetriedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "retried";
            by: string;
            acts?: string;
            expires: components["schemas"]["Instant"];
            /** @description Paths of steps */
            reset: string[];
            /** @description Paths of steps */
            reopened: string[];
            /**
             * Format: int64
             * @description Number of a payload
             */
            vars?: number;
        };
        /** @description The run continues under a newer version */
        AdoptedEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            at: components["schemas"]["Instant"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "adopted";
            by: string;
            acts?: string;
            expires: components["schemas"]["Instant"];
            /** Format: int64 */
            workflow_version: number;
            /** Format: int64 */
            max_duration_ms: number;
            /** @description Paths of steps */
            stands: string[];
            /**
             * Format: int64
             * @description Number of a payload
             */
            vars?: number;
        };
        /** @description The last event of a stream: the run has ended */
        StreamEndEvent: {
            run_id: string;
            workflow?: string;
            /** Format: int64 */
            version: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "end";
            status: components["schemas"]["RunStatus"];
        };
        /** @description Why an attempt failed */
        EventFailure: {
            kind: components["schemas"]["FailureKind"];
            code: string;
            message: string;
            retryable?: boolean;
            may_have_happened?: boolean;
            /** Format: int64 */
            retry_after_ms?: number;
        };
        /** @description The result of a call; payloads are referenced by number */
        EventOutput: {
            /**
             * Format: int64
             * @description Number of a payload
             */
            body: number;
            /**
             * Format: int64
             * @description Number of a payload
             */
            headers?: number;
            /** Format: int64 */
            status_code?: number;
            truncated?: boolean;
            /**
             * Format: int64
             * @description Number of a payload
             */
            log?: number;
        };
        /**
         * @description Type of an event
         * @enum {string}
         */
        EventType: "created" | "scheduled" | "due" | "started" | "entered" | "retrying" | "again" | "held" | "unsure" | "opened" | "closed" | "finished" | "skipped" | "kept" | "approved" | "changed" | "escalated" | "overridden" | "ended" | "retried" | "adopted";
        /** @enum {string} */
        WaitKind: "executor" | "sleep" | "webhook" | "gate" | "child" | "scope";
        /** @enum {string} */
        AgainReason: "retry" | "worker_lost" | "worker_stopped" | "asked" | "approved" | "deferred";
        /** @enum {string} */
        EndStatus: "success" | "denied" | "failed";
        /** @enum {string} */
        SkipReason: "condition" | "not_taken" | "upstream_failed";
        /** @enum {string} */
        FailureKind: "error" | "network" | "timeout";
        /** @description An event of a stream: a fact, or the end of the run */
        StreamEvent: components["schemas"]["CreatedEvent"] | components["schemas"]["ScheduledEvent"] | components["schemas"]["DueEvent"] | components["schemas"]["StartedEvent"] | components["schemas"]["EnteredEvent"] | components["schemas"]["RetryingEvent"] | components["schemas"]["AgainEvent"] | components["schemas"]["HeldEvent"] | components["schemas"]["UnsureEvent"] | components["schemas"]["OpenedEvent"] | components["schemas"]["ClosedEvent"] | components["schemas"]["FinishedEvent"] | components["schemas"]["SkippedEvent"] | components["schemas"]["KeptEvent"] | components["schemas"]["ApprovedEvent"] | components["schemas"]["ChangedEvent"] | components["schemas"]["EscalatedEvent"] | components["schemas"]["OverriddenEvent"] | components["schemas"]["EndedEvent"] | components["schemas"]["RetriedEvent"] | components["schemas"]["AdoptedEvent"] | components["schemas"]["StreamEndEvent"];
        /**
         * @description Stable code of an error. New codes may be added.
         * @enum {string}
         */
        ProblemCode: "bad-request" | "invalid-json" | "not-text" | "body-too-deep" | "not-a-websocket" | "unauthorised" | "forbidden" | "refused" | "cross-origin" | "plan-limit" | "not-found" | "method-not-allowed" | "request-timeout" | "exists" | "not-now" | "changed-meanwhile" | "idempotency-key-reused" | "workflow-disabled" | "run-finished" | "step-finished" | "not-waiting" | "stale-attempt" | "other-digest" | "repeated" | "not-started" | "nothing-to-retry" | "other-dialect" | "unknown-step" | "body-too-large" | "too-many-values" | "content-encoding" | "unknown-host" | "invalid-definition" | "invalid-input" | "rate-limited" | "concurrency-limit" | "broken" | "internal" | "unavailable" | "not-ready" | "busy" | "not-startable" | "too-many-streams" | "invalid-message" | "unknown-event" | "too-many-joined" | "not-shown";
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listApprovals: {
        parameters: {
            query?: {
                /** @description Maximum number of entries; 50 by default. */
                limit?: number;
                /** @description `next` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of open gates */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Approval"];
                };
            };
        };
    };
    listAuditRows: {
        parameters: {
            query?: {
                /** @description The user who acted */
                by?: string;
                /** @description For example `run.cancel` */
                action?: string;
                /** @description The target of the action */
                target?: string;
                /** @description Maximum number of entries; 50 by default */
                limit?: number;
                /** @description `next` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the audit trail */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Audit"];
                };
            };
        };
    };
    getAuditAnchor: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The anchor of the present state */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AuditAnchor"];
                };
            };
        };
    };
    exportAuditTrail: {
        parameters: {
            query?: {
                /** @description Only rows since this time, such as `2026-11-18T00:00:00Z` */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rows, newest first, and a signature at the end */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
        };
    };
    verifyAuditTrail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The verdict */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_AuditVerdict"];
                };
            };
        };
    };
    listChannels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The channels, without their credentials */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Channel"];
                };
            };
        };
    };
    createChannel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "team",
                 *       "medium": "slack",
                 *       "url": "https://hooks.slack.com/services/T/B/x"
                 *     }
                 */
                "application/json": components["schemas"]["NewChannelRequest"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_NewChannel"];
                };
            };
        };
    };
    deleteChannel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                channel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    testChannel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                channel: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Whether it was delivered */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_TestResult"];
                };
            };
        };
    };
    checkDefinition: {
        parameters: {
            query?: {
                /** @description Warn also about what the definition uses and this installation does not have */
                missing?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The definition */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "hello",
                 *       "tasks": {
                 *         "greet": {
                 *           "tool": "echo",
                 *           "args": {
                 *             "text": "Hello, {{input.name ?? 'world'}}!"
                 *           }
                 *         }
                 *       },
                 *       "output": "{{tasks.greet.body.text}}"
                 *     }
                 */
                "application/json": unknown;
                /**
                 * @example name: hello
                 *     tasks:
                 *       greet: {tool: echo, args: {text: "Hello, {{input.name ?? 'world'}}!"}}
                 *     output: "{{tasks.greet.body.text}}"
                 */
                "application/yaml": string;
            };
        };
        responses: {
            /** @description The definition is valid and has warnings */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_CheckResult"];
                };
            };
            /** @description The definition is valid */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listConnections: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All connections */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Connection"];
                };
            };
        };
    };
    getConnection: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the connection */
                connection: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection, without its URL */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Connection"];
                };
            };
        };
    };
    putConnection: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the connection */
                connection: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "postgres://app:{{secrets.DB_PASSWORD}}@db.example.com/shop",
                 *       "rows": 100
                 *     }
                 */
                "application/json": components["schemas"]["ConnectionRequest"];
            };
        };
        responses: {
            /** @description The connection, without its URL */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Connection"];
                };
            };
        };
    };
    deleteConnection: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the connection */
                connection: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description Only runs of this workflow, by name or id */
                workflow?: string;
                /** @description Include test runs */
                tests?: boolean;
                /** @description Only events after this position in the log; `Last-Event-ID` takes precedence */
                after?: string;
            };
            header?: {
                /** @description Id of the last event you received */
                "Last-Event-ID"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events as they happen */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["StreamEvent"];
                };
            };
        };
    };
    listKeys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Key"];
                };
            };
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "ci",
                 *       "grants": [
                 *         "workflow.read",
                 *         "workflow.run"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["NewKeyRequest"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_NewKey"];
                };
            };
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the key */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Revoked */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updateKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the key */
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "paused": true
                 *     }
                 */
                "application/json": components["schemas"]["KeyChangeRequest"];
            };
        };
        responses: {
            /** @description Changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Key"];
                };
            };
        };
    };
    rotateMasterKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was sealed again */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Rotated"];
                };
            };
        };
    };
    listMcpServers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All MCP servers */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_McpServer"];
                };
            };
        };
    };
    getMcpServer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name in the configuration */
                server: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The server */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_McpServer"];
                };
            };
        };
    };
    acceptMcpTools: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name in the configuration */
                server: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "tools": [
                 *         {
                 *           "tool": "read_file",
                 *           "digest": "6c1f…"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["AcceptRequest"];
            };
        };
        responses: {
            /** @description The server with the new state of its tools */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_McpServer"];
                };
            };
        };
    };
    getCaller: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The caller */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Me"];
                };
            };
        };
    };
    listNodes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All nodes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Node"];
                };
            };
        };
    };
    listNotifications: {
        parameters: {
            query?: {
                /** @description Maximum number of entries; 50 by default. */
                limit?: number;
                /** @description `next` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of notifications */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Notification"];
                };
            };
        };
    };
    listOrganisations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All organisations */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Organisation"];
                };
            };
        };
    };
    createOrganisation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "acme",
                 *       "plan": "starter"
                 *     }
                 */
                "application/json": components["schemas"]["NewOrganisationRequest"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_NewOrganisation"];
                };
            };
        };
    };
    setPlan: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Number of the organisation */
                id: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "plan": "starter"
                 *     }
                 */
                "application/json": components["schemas"]["PlanRequest"];
            };
        };
        responses: {
            /** @description Changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Organisation"];
                };
            };
        };
    };
    listPolicies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All policies */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Policy"];
                };
            };
        };
    };
    getPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the policy */
                policy: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The policy */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Policy"];
                };
            };
        };
    };
    putPolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the policy */
                policy: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "calls": "tool:pay.*",
                 *       "when": "args.amount > 500",
                 *       "effect": "deny",
                 *       "mode": "log"
                 *     }
                 */
                "application/json": components["schemas"]["PolicyRequest"];
            };
        };
        responses: {
            /** @description The stored policy */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Policy"];
                };
            };
        };
    };
    deletePolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the policy */
                policy: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    getPolicyLog: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the policy */
                policy: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Counts and samples */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_PolicyLog"];
                };
            };
        };
    };
    testPolicies: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "policies": {
                 *         "large": {
                 *           "calls": "tool:pay.*",
                 *           "effect": "deny"
                 *         }
                 *       },
                 *       "since": "7d"
                 *     }
                 */
                "application/json": components["schemas"]["PolicyTestRequest"];
            };
        };
        responses: {
            /** @description What they would have done */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_PolicyTest"];
                };
            };
        };
    };
    getPreferences: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description For browsers and each of your channels */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Preferences"];
                };
            };
        };
    };
    updatePreferences: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "browser": [
                 *         "gate_opened",
                 *         "run_failed"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Preferences"];
            };
        };
        responses: {
            /** @description Changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Preferences"];
                };
            };
        };
    };
    listQueries: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All saved queries */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Query"];
                };
            };
        };
    };
    getQuery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the query */
                query: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The query */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Query"];
                };
            };
        };
    };
    putQuery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the query */
                query: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "connection": "shop",
                 *       "sql": "select * from orders where id = :id",
                 *       "params": {
                 *         "id": 1
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["QueryRequest"];
            };
        };
        responses: {
            /** @description The stored query */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Query"];
                };
            };
        };
    };
    deleteQuery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the query */
                query: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listReviews: {
        parameters: {
            query?: {
                /** @description Also those that were answered or whose version is not the current one */
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The reviews */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_ReviewSummary"];
                };
            };
        };
    };
    getReview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id, or the workflow if one review of it is open */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The review */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ReviewDetail"];
                };
            };
        };
    };
    acceptReview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id, or the workflow if one review of it is open */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "digest": "6c1f…",
                 *       "comment": "fine"
                 *     }
                 */
                "application/json": components["schemas"]["ReviewRequest"];
            };
        };
        responses: {
            /** @description The accepted review */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ReviewSummary"];
                };
            };
        };
    };
    refuseReview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id, or the workflow if one review of it is open */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "digest": "6c1f…",
                 *       "comment": "ask before it mails customers"
                 *     }
                 */
                "application/json": components["schemas"]["ReviewRequest"];
            };
        };
        responses: {
            /** @description The refused review */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ReviewSummary"];
                };
            };
        };
    };
    listRoles: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All roles */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Role"];
                };
            };
        };
    };
    putRole: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the role */
                role: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "grants": [
                 *         "workflow.read",
                 *         "workflow.approve"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["RoleRequest"];
            };
        };
        responses: {
            /** @description The stored role */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Role"];
                };
            };
        };
    };
    deleteRole: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the role */
                role: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listRuns: {
        parameters: {
            query?: {
                /** @description One status, or several separated by commas. */
                status?: string;
                /** @description By name or id. */
                workflow?: string;
                /** @description Created at or after this instant. */
                since?: components["schemas"]["Instant"];
                /** @description Created before this instant. */
                until?: components["schemas"]["Instant"];
                /** @description The user who started it. */
                created_by?: string;
                /** @description `name=value`; a run must have all of several separated by commas. */
                label?: string;
                /** @description Part of the id, of the creator's name or of a label. */
                q?: string;
                /** @description Test runs in place of real ones. */
                tests?: boolean;
                /** @description Started by steps of this run. */
                parent?: string;
                /** @description Maximum number of entries; 50 by default. */
                limit?: number;
                /** @description `next` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_RunSummary"];
                };
            };
        };
    };
    cancelRuns: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filter": {
                 *         "workflow": "hello",
                 *         "status": "running"
                 *       },
                 *       "reason": "wrong input"
                 *     }
                 */
                "application/json": components["schemas"]["BulkRequest"];
            };
        };
        responses: {
            /** @description The result for each run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_BulkResult"];
                };
            };
        };
    };
    retryRuns: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "filter": {
                 *         "workflow": "hello",
                 *         "status": "failed"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["BulkRequest"];
            };
        };
        responses: {
            /** @description The result for each run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_BulkResult"];
                };
            };
        };
    };
    getRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
            /** @description Unchanged since `If-None-Match` */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    labelRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "labels": {
                 *         "customer": "acme"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["LabelRequest"];
            };
        };
        responses: {
            /** @description Labelled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    cancelRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "reason": "wrong order"
                 *     }
                 */
                "application/json": components["schemas"]["CancelRequest"] | null;
            };
        };
        responses: {
            /** @description Cancelled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    eraseRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Erased */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    listRunEvents: {
        parameters: {
            query?: {
                /** @description Only events after this version of the run */
                after?: number;
                /** @description Maximum number of entries; 200 by default */
                limit?: number;
                /** @description `next` of the previous page */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Event"];
                };
            };
        };
    };
    getRunGraph: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its steps and edges */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Graph"];
                };
            };
        };
    };
    releaseRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Released */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    rerunRun: {
        parameters: {
            query?: {
                /** @description How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same */
                wait?: string;
            };
            header?: {
                /** @description `wait=30` waits up to 30 seconds for the end */
                Prefer?: string | null;
            };
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        /** @description A different input */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "Bob"
                 *     }
                 */
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Finished in time */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
            /** @description Started */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Triggered"];
                };
            };
            /** @description Started, and not finished in time */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    previewRetry: {
        parameters: {
            query?: {
                /** @description Under the newest version of the workflow instead of the run's own */
                newest?: boolean;
            };
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The preview */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_RetryPreview"];
                };
            };
        };
    };
    retryRun: {
        parameters: {
            query?: {
                /** @description How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same */
                wait?: string;
            };
            header?: {
                /** @description `wait=30` waits up to 30 seconds for the end */
                Prefer?: string | null;
            };
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "newest": true
                 *     }
                 */
                "application/json": components["schemas"]["RetryRequest"] | null;
            };
        };
        responses: {
            /** @description The run continues, or finished in time */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
            /** @description The run continues, and did not finish in time */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    getRunState: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its state */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_RunState"];
                };
            };
        };
    };
    listSteps: {
        parameters: {
            query?: {
                /** @description One status, or several separated by commas: pending, running, sleeping, waiting, success, failed, … */
                status?: string;
                /** @description What the path begins with: `each[3].` for the steps of an item */
                prefix?: string;
                /** @description Maximum number of entries; 100 by default */
                limit?: number;
                /** @description `next` of the previous page */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of steps */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_StepOfRun"];
                };
            };
        };
    };
    getApproval: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id */
                run: string;
                /** @description The step's name or path */
                step: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The gate */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Approval"];
                };
            };
        };
    };
    approveStep: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id */
                run: string;
                /** @description The gate's name or path */
                step: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "comment": "go ahead",
                 *       "data": {
                 *         "amount": 12
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["AnswerRequest"] | null;
            };
        };
        responses: {
            /** @description Approved */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    deliverToStep: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id */
                run: string;
                /** @description The step's name or path */
                step: string;
            };
            cookie?: never;
        };
        /** @description The content of the call */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "status": "paid"
                 *     }
                 */
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Delivered */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    denyStep: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id */
                run: string;
                /** @description The gate's name or path */
                step: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "comment": "too expensive"
                 *     }
                 */
                "application/json": components["schemas"]["AnswerRequest"] | null;
            };
        };
        responses: {
            /** @description Denied */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    finishStep: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id */
                run: string;
                /** @description The step's name or path */
                step: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "status": "failed",
                 *       "error": "the card is gone",
                 *       "comment": "called the bank"
                 *     }
                 */
                "application/json": components["schemas"]["FinishRequest"] | null;
            };
        };
        responses: {
            /** @description Ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    createApprovalLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id */
                run: string;
                /** @description The step's name or path */
                step: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "user": "ann"
                 *     }
                 */
                "application/json": components["schemas"]["LinkRequest"] | null;
            };
        };
        responses: {
            /** @description The link */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Link"];
                };
            };
        };
    };
    settleStep: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The run's id */
                run: string;
                /** @description The step's name or path */
                step: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "verdict": "happened",
                 *       "output": {
                 *         "id": "ch_1"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["VerdictRequest"];
            };
        };
        responses: {
            /** @description Recorded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    streamRun: {
        parameters: {
            query?: {
                /** @description Only events after this version of the run; `Last-Event-ID` takes precedence */
                after?: string;
            };
            header?: {
                /** @description Id of the last event you received */
                "Last-Event-ID"?: string | null;
            };
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events as they happen */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["StreamEvent"];
                };
            };
            /** @description The run has ended and you have all its events */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listSchedules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All schedules */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_ScheduleSummary"];
                };
            };
        };
    };
    deleteSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the schedule */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listSecrets: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All secrets */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Secret"];
                };
            };
        };
    };
    getSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the secret */
                secret: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secret, without its value */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Secret"];
                };
            };
        };
    };
    putSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the secret */
                secret: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "value": "s3cret-value",
                 *       "hosts": [
                 *         "api.example.com"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["SecretRequest"];
            };
        };
        responses: {
            /** @description The stored secret, without its value */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Secret"];
                };
            };
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the secret */
                secret: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removed */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    createSignInLink: {
        parameters: {
            query?: {
                /** @description A user by name or id; you, if omitted */
                user?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The link */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Link"];
                };
            };
        };
    };
    signOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Signed out */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    approveStepById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The step's id */
                step: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "comment": "go ahead"
                 *     }
                 */
                "application/json": components["schemas"]["AnswerRequest"] | null;
            };
        };
        responses: {
            /** @description Approved */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    denyStepById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The step's id */
                step: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "comment": "too expensive"
                 *     }
                 */
                "application/json": components["schemas"]["AnswerRequest"] | null;
            };
        };
        responses: {
            /** @description Denied */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    signalStep: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The step's id */
                step: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The step continues */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    startTestRun: {
        parameters: {
            query?: {
                /** @description How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same */
                wait?: string;
            };
            header?: {
                /** @description `wait=30` waits up to 30 seconds for the end */
                Prefer?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "definition": {
                 *         "name": "hello",
                 *         "tasks": {
                 *           "greet": {
                 *             "tool": "echo",
                 *             "args": {
                 *               "text": "Hello, {{input.name ?? 'world'}}!"
                 *             }
                 *           }
                 *         },
                 *         "output": "{{tasks.greet.body.text}}"
                 *       },
                 *       "input": {
                 *         "name": "Ann"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["TestRequest"];
            };
        };
        responses: {
            /** @description Finished in time */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
            /** @description Started */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Triggered"];
                };
            };
            /** @description Started, and not finished in time */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    deleteTestRun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listTools: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All workflows that are exposed as tools */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_WorkflowTool"];
                };
            };
        };
    };
    listCatalogue: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All tools, with those that this key may call marked */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_CatalogueTool"];
                };
            };
        };
    };
    getUsage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This month's usage */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Usage"];
                };
            };
        };
    };
    listUsers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All users */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_User"];
                };
            };
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "ann",
                 *       "roles": [
                 *         "operator"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["NewUserRequest"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_User"];
                };
            };
        };
    };
    getUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                user: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_User"];
                };
            };
        };
    };
    disableUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                user: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Disabled */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updateUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                user: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "roles": [
                 *         "operator",
                 *         "finance"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["UserChangeRequest"];
            };
        };
        responses: {
            /** @description Changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_User"];
                };
            };
        };
    };
    listWorkflows: {
        parameters: {
            query?: {
                /** @description `name=value`; a workflow must have all of several separated by commas */
                label?: string;
                /** @description Part of the name. */
                q?: string;
                /** @description Deleted workflows instead of the others, latest deletion first. */
                deleted?: boolean;
                /** @description What each workflow has besides: `definition`, `graph` or both, separated by commas */
                include?: string;
                /** @description Maximum number of entries; 50 by default */
                limit?: number;
                /** @description `next` of the previous page */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of workflows */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_ListedWorkflow"];
                };
            };
        };
    };
    createWorkflow: {
        parameters: {
            query?: {
                /** @description Why it is written, for the person who reviews it */
                reason?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The definition */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "hello",
                 *       "tasks": {
                 *         "greet": {
                 *           "tool": "echo",
                 *           "args": {
                 *             "text": "Hello, {{input.name ?? 'world'}}!"
                 *           }
                 *         }
                 *       },
                 *       "output": "{{tasks.greet.body.text}}"
                 *     }
                 */
                "application/json": unknown;
                /**
                 * @example name: hello
                 *     tasks:
                 *       greet: {tool: echo, args: {text: "Hello, {{input.name ?? 'world'}}!"}}
                 *     output: "{{tasks.greet.body.text}}"
                 */
                "application/yaml": string;
            };
        };
        responses: {
            /** @description An identical workflow exists */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Defined"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Defined"];
                };
            };
        };
    };
    getWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The workflow */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Workflow"];
                };
            };
            /** @description Unchanged since `If-None-Match` */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    putWorkflow: {
        parameters: {
            query?: {
                /** @description Why it is written, for the person who reviews it */
                reason?: string;
            };
            header?: {
                /** @description The `ETag` of an earlier response */
                "If-Match"?: string | null;
            };
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        /** @description The definition */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "hello",
                 *       "tasks": {
                 *         "greet": {
                 *           "tool": "echo",
                 *           "args": {
                 *             "text": "Hello, {{input.name ?? 'world'}}!"
                 *           }
                 *         }
                 *       },
                 *       "output": "{{tasks.greet.body.text}}"
                 *     }
                 */
                "application/json": unknown;
                /**
                 * @example name: hello
                 *     tasks:
                 *       greet: {tool: echo, args: {text: "Hello, {{input.name ?? 'world'}}!"}}
                 *     output: "{{tasks.greet.body.text}}"
                 */
                "application/yaml": string;
            };
        };
        responses: {
            /** @description The newest version is the given definition */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Defined"];
                };
            };
            /** @description Created: there was no workflow with that name */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Defined"];
                };
            };
            /** @description An agent's proposal: the version in `data` stays current until a person accepts the `review` */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Defined"];
                };
            };
        };
    };
    deleteWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deleted */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updateWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "enabled": false
                 *     }
                 */
                "application/json": components["schemas"]["WorkflowSwitch"];
            };
        };
        responses: {
            /** @description Changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowSummary"];
                };
            };
        };
    };
    getWorkflowGraph: {
        parameters: {
            query?: {
                /** @description The newest version if omitted */
                version?: number;
            };
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its steps and edges */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Graph"];
                };
            };
        };
    };
    pauseWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "key": "acme"
                 *     }
                 */
                "application/json": components["schemas"]["PauseRequest"] | null;
            };
        };
        responses: {
            /** @description Held */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowSummary"];
                };
            };
        };
    };
    restoreWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Restored */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowSummary"];
                };
            };
        };
    };
    resumeWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "key": "acme"
                 *     }
                 */
                "application/json": components["schemas"]["PauseRequest"] | null;
            };
        };
        responses: {
            /** @description Released */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowSummary"];
                };
            };
        };
    };
    rotateWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The new URLs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_String"];
                };
            };
        };
    };
    listRunsOfWorkflow: {
        parameters: {
            query?: {
                /** @description One status, or several separated by commas. */
                status?: string;
                /** @description By name or id. */
                workflow?: string;
                /** @description Created at or after this instant. */
                since?: components["schemas"]["Instant"];
                /** @description Created before this instant. */
                until?: components["schemas"]["Instant"];
                /** @description The user who started it. */
                created_by?: string;
                /** @description `name=value`; a run must have all of several separated by commas. */
                label?: string;
                /** @description Part of the id, of the creator's name or of a label. */
                q?: string;
                /** @description Test runs in place of real ones. */
                tests?: boolean;
                /** @description Started by steps of this run. */
                parent?: string;
                /** @description Maximum number of entries; 50 by default. */
                limit?: number;
                /** @description `next` of the previous page. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Id or name of the workflow */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of runs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_RunSummary"];
                };
            };
        };
    };
    getRunOfWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name of the workflow */
                id: string;
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
            /** @description Unchanged since `If-None-Match` */
            304: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    cancelRunOfWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name of the workflow */
                id: string;
                /** @description Id of the run */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "reason": "wrong order"
                 *     }
                 */
                "application/json": components["schemas"]["CancelRequest"] | null;
            };
        };
        responses: {
            /** @description Cancelled */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    listSchedulesOfWorkflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Its schedules */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_ScheduleSummary"];
                };
            };
        };
    };
    createSchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "cron": "0 8 * * 1-5",
                 *       "timezone": "Europe/Paris",
                 *       "input": {
                 *         "name": "Ann"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["NewSchedule"];
            };
        };
        responses: {
            /** @description Added */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_ScheduleSummary"];
                };
            };
        };
    };
    triggerWorkflow: {
        parameters: {
            query?: {
                /** @description How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same */
                wait?: string;
                /** @description Labels of the run: `name=value`, several separated by commas */
                label?: string;
                /** @description When the run begins, such as `2026-12-24T18:00:00+01:00`; until then it is `scheduled` */
                at?: string;
                /** @description How long after the request the run begins, such as `90m`; instead of `at` */
                delay?: string;
            };
            header?: {
                /** @description The same key with the same body starts only one run */
                "Idempotency-Key"?: string | null;
                /** @description `wait=30` waits up to 30 seconds for the end */
                Prefer?: string | null;
            };
            path: {
                /** @description Id or name of the workflow */
                id: string;
            };
            cookie?: never;
        };
        /** @description The run's input: any JSON */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "Ann"
                 *     }
                 */
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Already started with this key, or finished in time */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
            /** @description Started */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Triggered"];
                };
            };
            /** @description Started, and not finished in time */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Run"];
                };
            };
        };
    };
    listVersions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All versions */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Page_Version"];
                };
            };
        };
    };
    getVersion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id or name */
                id: string;
                /** @description The version */
                version: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The version */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Version"];
                };
            };
        };
    };
    openSocket: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The connection was upgraded to a WebSocket */
            101: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    showApprovalPage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last part of the link */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The question */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    submitApprovalPage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last part of the link */
                token: string;
            };
            cookie?: never;
        };
        /** @description decision (approve or deny), digest, comment, and the fields of the form */
        requestBody: {
            content: {
                "application/x-www-form-urlencoded": {
                    /** @enum {string} */
                    decision: "approve" | "deny";
                    /** @description Digest of the question that was shown */
                    digest?: string;
                    comment?: string;
                    /** @description All fields of the gate's form as JSON */
                    form?: string;
                } & {
                    [key: string]: string;
                };
            };
        };
        responses: {
            /** @description Accepted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    callTrigger: {
        parameters: {
            query?: never;
            header?: {
                /** @description Identifies the request in the log and in the response */
                "X-Request-Id"?: string;
            };
            path: {
                /** @description The last part of the URL */
                token: string;
            };
            cookie?: never;
        };
        /** @description The run's input */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "order": 4711
                 *     }
                 */
                "application/json": unknown;
                "application/octet-stream": string;
                "text/plain": string;
            };
        };
        responses: {
            /** @description The same event has already started a run */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Triggered"];
                };
            };
            /** @description Accepted: the run is on disk */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Triggered"];
                };
            };
        };
    };
    signIn: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last part of the link */
                link: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Signed in: redirects to the dashboard */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    showCallbackPage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last part of the URL */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The purpose of the URL */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
        };
    };
    deliverCallback: {
        parameters: {
            query?: never;
            header?: {
                /** @description Identifies the request in the log and in the response */
                "X-Request-Id"?: string;
            };
            path: {
                /** @description The last part of the URL */
                token: string;
            };
            cookie?: never;
        };
        /** @description The step's result */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "status": "paid"
                 *     }
                 */
                "application/json": unknown;
                "application/octet-stream": string;
                "text/plain": string;
            };
        };
        responses: {
            /** @description Delivered */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Received"];
                };
            };
        };
    };
}
