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
        get: operations["get_approvals"];
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
        get: operations["get_audit"];
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
        get: operations["get_audit_verify"];
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
        get: operations["get_channels"];
        put?: never;
        /** Create a channel; a webhook's secret is shown only in this response */
        post: operations["post_channels"];
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
        delete: operations["delete_channels_channel"];
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
        post: operations["post_channels_channel_test"];
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
        post: operations["post_check"];
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
        get: operations["get_connections"];
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
        get: operations["get_connections_connection"];
        /** Create or replace a connection; a SQLite file requires the right `operator` */
        put: operations["put_connections_connection"];
        post?: never;
        /** Remove a connection */
        delete: operations["delete_connections_connection"];
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
        get: operations["get_events"];
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
        get: operations["get_keys"];
        put?: never;
        /** Create an API key; the response is the only place that shows it */
        post: operations["post_keys"];
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
        delete: operations["delete_keys_key"];
        options?: never;
        head?: never;
        /** Rename a key, pause it or resume it */
        patch: operations["patch_keys_key"];
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
        post: operations["post_master_key_rotate"];
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
        get: operations["get_mcp_servers"];
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
        get: operations["get_mcp_servers_server"];
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
        post: operations["post_mcp_servers_server_accept"];
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
        get: operations["get_me"];
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
        get: operations["get_nodes"];
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
        get: operations["get_notifications"];
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
        get: operations["get_organisations"];
        put?: never;
        /** Create an organisation with a first user `admin`, whose key is shown only in the response */
        post: operations["post_organisations"];
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
        put: operations["put_organisations_id_plan"];
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
        get: operations["get_policies"];
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
        get: operations["get_policies_policy"];
        /** Create or replace a policy; takes effect from the next call */
        put: operations["put_policies_policy"];
        post?: never;
        /** Remove a policy */
        delete: operations["delete_policies_policy"];
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
        get: operations["get_preferences"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change which events you are notified of; omitted fields are kept */
        patch: operations["patch_preferences"];
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
        get: operations["get_queries"];
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
        get: operations["get_queries_query"];
        /** Create or replace a saved query; takes effect from the next step */
        put: operations["put_queries_query"];
        post?: never;
        /** Remove a saved query */
        delete: operations["delete_queries_query"];
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
        get: operations["get_roles"];
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
        put: operations["put_roles_role"];
        post?: never;
        /** Remove a role that no user has */
        delete: operations["delete_roles_role"];
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
        get: operations["get_runs"];
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
        post: operations["post_runs_cancel"];
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
        post: operations["post_runs_retry"];
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
        /** A run with all its steps, and what it waits for */
        get: operations["get_runs_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Replace the labels of a run */
        patch: operations["patch_runs_run"];
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
        post: operations["post_runs_run_cancel"];
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
        post: operations["post_runs_run_erase"];
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
        /** The log of a run, in order */
        get: operations["get_runs_run_events"];
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
        get: operations["get_runs_run_graph"];
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
        post: operations["post_runs_run_release"];
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
        post: operations["post_runs_run_rerun"];
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
        get: operations["get_runs_run_retry"];
        put?: never;
        /**
         * Retry a run that failed, timed out or was cancelled: steps that did not succeed run again
         * @description With `wait`: 200 with the finished run, or 202 with the running one when the time is up.
         */
        post: operations["post_runs_run_retry"];
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
        get: operations["get_runs_run_steps_step_approval"];
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
        post: operations["post_runs_run_steps_step_approve"];
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
        post: operations["post_runs_run_steps_step_deliver"];
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
        post: operations["post_runs_run_steps_step_deny"];
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
        post: operations["post_runs_run_steps_step_finish"];
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
        post: operations["post_runs_run_steps_step_link"];
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
        post: operations["post_runs_run_steps_step_verdict"];
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
        get: operations["get_runs_run_stream"];
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
        get: operations["get_schedules"];
        put?: never;
        post?: never;
        delete?: never;
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
        get: operations["get_secrets"];
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
        get: operations["get_secrets_secret"];
        /** Create a secret, or change its value or hosts; takes effect from the next step */
        put: operations["put_secrets_secret"];
        post?: never;
        /** Remove a secret */
        delete: operations["delete_secrets_secret"];
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
        post: operations["post_sign_in_links"];
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
        post: operations["post_sign_out"];
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
        post: operations["post_steps_step_approve"];
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
        post: operations["post_steps_step_deny"];
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
        post: operations["post_steps_step_ready"];
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
        post: operations["post_test_runs"];
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
        delete: operations["delete_test_runs_run"];
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
        get: operations["get_tools"];
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
        get: operations["get_usage"];
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
        get: operations["get_users"];
        put?: never;
        /** Create a user */
        post: operations["post_users"];
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
        get: operations["get_users_user"];
        put?: never;
        post?: never;
        /** Disable a user permanently; their history is kept */
        delete: operations["delete_users_user"];
        options?: never;
        head?: never;
        /** Change a user's roles or grants, or disable them; takes effect from the next step of their runs */
        patch: operations["patch_users_user"];
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
        get: operations["get_workflows"];
        put?: never;
        /**
         * Create a workflow from a definition in JSON or YAML, in any dialect
         * @description 201 for a new workflow, 200 if an identical one exists, 409 if another one has that name: use `PUT` to create its
         *     next version.
         */
        post: operations["post_workflows"];
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
        get: operations["get_workflows_id"];
        /**
         * Create the next version of a workflow, or the first
         * @description Running runs keep their version. With `If-Match`, only if the workflow has not changed.
         */
        put: operations["put_workflows_id"];
        post?: never;
        /** Delete a workflow; running runs finish, and it can be restored */
        delete: operations["delete_workflows_id"];
        options?: never;
        head?: never;
        /**
         * Enable or disable a workflow, or make it a part of a set
         * @description A disabled workflow refuses triggers and skips its schedule. Nothing is deleted.
         */
        patch: operations["patch_workflows_id"];
        trace?: never;
    };
    "/api/v1/workflows/{id}/accept-tool": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept the newest version of a workflow as a tool that agents are offered */
        post: operations["post_workflows_id_accept_tool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
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
        get: operations["get_workflows_id_graph"];
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
        post: operations["post_workflows_id_pause"];
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
        post: operations["post_workflows_id_restore"];
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
        post: operations["post_workflows_id_resume"];
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
        post: operations["post_workflows_id_rotate_webhooks"];
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
        get: operations["get_workflows_id_runs"];
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
        get: operations["get_workflows_id_runs_run"];
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
        post: operations["post_workflows_id_runs_run_cancel"];
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
        get: operations["get_workflows_id_schedule"];
        put?: never;
        post?: never;
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
         *     With `wait`: 200 with the finished run, or 202 with the running one when the time is up.
         */
        post: operations["post_workflows_id_trigger"];
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
        get: operations["get_workflows_id_versions"];
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
        get: operations["get_workflows_id_versions_version"];
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
        get: operations["get_ws"];
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
        get: operations["get_approve_token"];
        put?: never;
        /** Submit the answer; the link works once */
        post: operations["post_approve_token"];
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
        post: operations["post_in_token"];
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
        get: operations["get_sign_in_link"];
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
        get: operations["get_wh_token"];
        put?: never;
        /**
         * Deliver the call that a step waits for
         * @description A call that arrives before its step waits is stored. 409 if one was already delivered, 410 if the step or the run
         *     has ended. A body of more than 256 KB is truncated, or refused with 413 (setting `limits.long_callbacks`).
         */
        post: operations["post_wh_token"];
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
        /** @description The version to accept. */
        AcceptToolRequest: {
            /**
             * Format: int32
             * @description The version that was reviewed. Refused if there is a newer one by now.
             * @default null
             */
            version: number | null;
        };
        AcceptedTool: {
            /** @description Digest of the reviewed tool. Refused if the server offers a different one by now. */
            digest?: string | null;
            /** @description The name on its server. */
            tool: string;
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
        };
        /** @description A gate that waits for a person. */
        ApprovalView: {
            /**
             * Format: int32
             * @description Number of approvals required.
             */
            approvals?: number;
            /** @description Who has approved so far, if several approvals are required. */
            approved_by?: string[];
            /**
             * @description The resolved question: message, approvers, form, the `calls` that wait for an approval, and those that follow a
             *     denial (`on_denial`).
             */
            asks: unknown;
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
            /** @description approval, or verdict on a call that may have happened. */
            kind: string;
            /** @description Whether you may answer it. */
            mine: boolean;
            /** @description What happens then: approve or deny. Null if it waits as long as the run lasts. */
            on_timeout?: string | null;
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
        Attempt: {
            /** Format: int32 */
            attempt: number;
            error?: components["schemas"]["ErrorView"] | null;
            finished_at?: components["schemas"]["Instant"] | null;
            log?: components["schemas"]["LogLine"][];
            output?: unknown;
            started_at: components["schemas"]["Instant"];
            status: string;
        };
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
        AuditView: {
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
        /** @description A channel, without its credentials. */
        ChannelView: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            events: components["schemas"]["TopicView"][];
            id: string;
            medium: components["schemas"]["MediumView"];
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
        ConnectionView: {
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
            /** @description `postgres` or `sqlite`. */
            scheme: string;
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
        Data_ApprovalView: {
            /** @description A gate that waits for a person. */
            data: {
                /**
                 * Format: int32
                 * @description Number of approvals required.
                 */
                approvals?: number;
                /** @description Who has approved so far, if several approvals are required. */
                approved_by?: string[];
                /**
                 * @description The resolved question: message, approvers, form, the `calls` that wait for an approval, and those that follow a
                 *     denial (`on_denial`).
                 */
                asks: unknown;
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
                /** @description approval, or verdict on a call that may have happened. */
                kind: string;
                /** @description Whether you may answer it. */
                mine: boolean;
                /** @description What happens then: approve or deny. Null if it waits as long as the run lasts. */
                on_timeout?: string | null;
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
        };
        /** @description A response: the result is in `data`. */
        Data_AuditVerdict: {
            /** @description Whether the audit trail was tampered with. */
            data: {
                /**
                 * Format: int64
                 * @description The first row with a wrong hash; none if the trail is intact.
                 */
                broken_at?: number | null;
                /** Format: int64 */
                rows: number;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_BulkResult: {
            /** @description The result of a bulk operation. */
            data: {
                /** @description Runs that were changed. */
                done: string[];
                /** @description More runs match than one request may change: repeat the request. */
                more: boolean;
                refused: components["schemas"]["BulkRefusal"][];
            };
        };
        /** @description A response: the result is in `data`. */
        Data_ConnectionView: {
            /** @description A database for query steps. Its URL is never shown. */
            data: {
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
                /** @description `postgres` or `sqlite`. */
                scheme: string;
                sealed_with: string;
                /**
                 * Format: int64
                 * @description Maximum duration of a statement in milliseconds, if lower than the server's limit.
                 */
                timeout_ms?: number | null;
                /** @description Whether statements may write. */
                write: boolean;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_GraphView: {
            /** @description The steps of a version and the edges between them, for any dialect. Edges refer to steps by their index in `nodes`. */
            data: {
                edges: components["schemas"]["GraphEdge"][];
                name: string;
                nodes: components["schemas"]["GraphNode"][];
                /**
                 * Format: int32
                 * @description Name of the workflow.
                 */
                version: number;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_KeyView: {
            data: {
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
        };
        /** @description A response: the result is in `data`. */
        Data_LinkView: {
            /** @description A link that signs in one browser, once. */
            data: {
                url: string;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_McpServerView: {
            /** @description An MCP server whose tools steps can call, as seen by this node. */
            data: {
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
                /** @description `ready`, `connecting`, `down`, or `absent` if this node is not configured to connect to it. */
                state: string;
                tools: components["schemas"]["McpToolView"][];
                /** @description `stdio` or `http`. */
                transport?: string | null;
                /** @description Why it is down. */
                why?: string | null;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_Me: {
            /** @description The authenticated caller. */
            data: {
                agent: boolean;
                /** @description What you may do with these credentials. */
                grants: string[];
                /** @description The id of your key; none in a browser session. */
                key?: string | null;
                organisation: components["schemas"]["OrganisationView"];
                user: string;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_NewChannelView: {
            /** @description A new channel. */
            data: components["schemas"]["ChannelView"] & {
                /** @description `whsec_…`: the key that signs calls of a webhook. Shown only here. */
                secret?: string | null;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_NewKeyView: {
            /** @description A new key. The key itself is shown only here. */
            data: components["schemas"]["KeyView"] & {
                /** @description `sw_…`. */
                key: string;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_NewOrganisationView: {
            /** @description A new organisation with the key of its first user, `admin`. The key is shown only here. */
            data: components["schemas"]["OrganisationView"] & {
                admin_key: string;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_OrganisationView: {
            data: {
                /** Format: int64 */
                id: number;
                limits: components["schemas"]["LimitsView"];
                name: string;
                plan: string;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_PolicyView: {
            data: {
                allow_self: boolean;
                /** Format: int32 */
                approvals: number;
                approvers: string[];
                at_most_once?: components["schemas"]["UnknownName"] | null;
                calls: string;
                created_at: components["schemas"]["Instant"];
                created_by: string;
                effect: components["schemas"]["EffectName"];
                name: string;
                rate?: components["schemas"]["RateView"] | null;
                reason?: string | null;
                timeout?: components["schemas"]["Length"] | null;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_PreferencesView: {
            /** @description Which events you are notified of, and where. Only the given fields are changed. */
            data: {
                /**
                 * @description In a connected browser.
                 * @default null
                 */
                browser: components["schemas"]["TopicView"][] | null;
                /**
                 * @description By the id of the channel.
                 * @default {}
                 */
                channels: {
                    [key: string]: components["schemas"]["TopicView"][];
                };
            };
        };
        /** @description A response: the result is in `data`. */
        Data_QueryView: {
            /** @description A statement that query steps use by name. */
            data: {
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
        };
        /** @description A response: the result is in `data`. */
        Data_Received: {
            /** @description The response to an accepted call. */
            data: {
                received: boolean;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_RetryPreview: {
            /** @description What a retry would keep. */
            data: {
                /** @description Steps that would run again; those inside a loop that is only continued, by path. */
                again: string[];
                /** @description Steps whose results are kept. */
                stands: string[];
            };
        };
        /** @description A response: the result is in `data`. */
        Data_RoleView: {
            data: {
                /** @description Built in; cannot be changed. */
                built_in: boolean;
                grants: string[];
                name: string;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_RotatedView: {
            /** @description The result of a master key rotation. */
            data: {
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
        };
        /** @description A response: the result is in `data`. */
        Data_Run: {
            /** @description A run in full. */
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                erased_at?: components["schemas"]["Instant"] | null;
                error?: components["schemas"]["ErrorView"] | null;
                finished_at?: components["schemas"]["Instant"] | null;
                /**
                 * Format: int32
                 * @description Increases with each retry of the run.
                 */
                generation: number;
                id: string;
                input: unknown;
                labels: {
                    [key: string]: string;
                };
                output?: unknown;
                /** @description The step of another run that started it, as long as that run exists. */
                parent?: components["schemas"]["ParentStep"];
                started_at?: components["schemas"]["Instant"] | null;
                /** @description queued, running, paused, completed, failed, cancelled or timeout. */
                status: string;
                /** @description By name; steps inside loops by path, such as `each[3].charge`. */
                tasks: {
                    [key: string]: components["schemas"]["Step"];
                };
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
        };
        /** @description A response: the result is in `data`. */
        Data_RunWithId: {
            /** @description A run that also has its id under the name used by trigger responses. */
            data: components["schemas"]["Run"] & {
                run_id: string;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_SecretView: {
            /** @description A secret. Its value is never shown. */
            data: {
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
        };
        /** @description A response: the result is in `data`. */
        Data_TestView: {
            /** @description Whether a message was delivered. */
            data: {
                arrived: boolean;
                error?: string | null;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_Triggered: {
            /** @description A run that was just started. */
            data: {
                run_id: string;
                started_at?: components["schemas"]["Instant"];
                status: string;
                workflow: string;
                workflow_id: string;
                /** Format: int32 */
                workflow_version: number;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_UsageView: {
            data: {
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
                organisation: components["schemas"]["OrganisationView"];
                /** Format: int64 */
                workflows: number;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_UserView: {
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                disabled: boolean;
                /** @description In addition to the grants of the roles. */
                grants: string[];
                id: string;
                name: string;
                roles: string[];
            };
        };
        /** @description A response: the result is in `data`. */
        Data_VersionView: {
            /** @description One version of a workflow. */
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                /** @description As its author wrote it, JSON or YAML. */
                source: string;
                /** Format: int32 */
                version: number;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_WarningsView: {
            /** @description What is suspicious in a definition that is valid. */
            data: {
                warnings: components["schemas"]["FaultView"][];
            };
        };
        /** @description A response: the result is in `data`. */
        Data_Workflow: {
            /** @description A workflow with its definition. */
            data: components["schemas"]["WorkflowSummary"] & {
                /** @description The parsed source. */
                definition: unknown;
                /** @description tasks, flow or graph. */
                dialect: string;
                input_schema?: unknown;
                /** @description Concurrency keys whose new runs wait. */
                paused_keys?: components["schemas"]["PausedKey"][];
                /** @description As its author wrote it, JSON or YAML. */
                source: string;
                /** @description By name, for any dialect. */
                steps: {
                    [key: string]: components["schemas"]["TaskView"];
                };
                /** @description Its tasks as written, if it uses the tasks dialect. */
                tasks?: unknown;
                /** @description URLs that start it; only for callers who may change it. */
                webhooks?: string[];
            };
        };
        /** @description A response: the result is in `data`. */
        Data_WorkflowSummary: {
            /** @description A workflow as lists show it. */
            data: {
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
                trigger: string;
                /** @description api, webhook, cron or at. */
                triggers: string[];
                /** @description When this version was stored. */
                updated_at: components["schemas"]["Instant"];
                /** Format: int32 */
                version: number;
            };
        };
        /** @description A response: the result is in `data`. */
        Data_WorkflowToolView: {
            /** @description A workflow that is exposed as a tool. */
            data: {
                accepted_at?: components["schemas"]["Instant"] | null;
                accepted_by?: string | null;
                /** Format: int32 */
                accepted_version?: number | null;
                /** @description Who defined that version. */
                defined_by: string;
                description?: string | null;
                input_schema?: Record<string, never> | null;
                /** @description The name of the tool. */
                name: string;
                /** @description Whether agents are offered it: accepted, and the workflow enabled. */
                offered: boolean;
                /**
                 * @description `accepted`; `changed` and `new` were defined by an agent and are held until a person accepts them; `held` if
                 *     the name belongs to another tool.
                 */
                standing: string;
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
        };
        /** @description A workflow that was defined, and what is suspicious in its definition. */
        DefinedView: {
            data: components["schemas"]["WorkflowSummary"];
            warnings?: components["schemas"]["FaultView"][];
        };
        /** @description A deleted workflow whose name another one has now. */
        EarlierWorkflow: {
            deleted_at: components["schemas"]["Instant"];
            id: string;
        };
        /** @enum {string} */
        EffectName: "allow" | "require_approval" | "deny";
        ErrorView: {
            code: string;
            message: string;
        };
        /** @description One fact of a run's log. */
        Event: {
            at: components["schemas"]["Instant"];
            run_id: string;
            step?: string | null;
            /** @description created, started, entered, retrying, again, finished, skipped, ended, … */
            type: string;
            /**
             * Format: int64
             * @description The commit that contains it.
             */
            version: number;
        };
        /** @description One error, its location, and how to fix it. */
        FaultView: {
            code?: string | null;
            /** Format: int32 */
            column?: number | null;
            hint?: string | null;
            /** Format: int32 */
            line?: number | null;
            message: string;
            /** @description For example `tasks.send.needs[0]`. */
            path: string;
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
            /**
             * @description success or failed.
             * @default null
             */
            status: string | null;
        };
        GraphEdge: {
            from: number;
            /** @description Handle or condition; empty for plain success. */
            label: string;
            /** @description normal, error or back. */
            style: string;
            to: number;
        };
        GraphNode: {
            /** @description A short summary: `POST /charge`, `3d`. */
            detail: string;
            kind: string;
            name: string;
            /** @description The loop or for_each that contains it. */
            parent?: number | null;
            /** @description The path of the step in runs, without iteration and item numbers: `each[].charge`. */
            path: string;
        };
        /** @description The steps of a version and the edges between them, for any dialect. Edges refer to steps by their index in `nodes`. */
        GraphView: {
            edges: components["schemas"]["GraphEdge"][];
            name: string;
            nodes: components["schemas"]["GraphNode"][];
            /**
             * Format: int32
             * @description Name of the workflow.
             */
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
        KeyView: {
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
        LimitsView: {
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
        LinkView: {
            url: string;
        };
        /** @description A line written by code. */
        LogLine: {
            /** @description debug, info, warn or error. */
            level: string;
            text: string;
        };
        /** @description An MCP server whose tools steps can call, as seen by this node. */
        McpServerView: {
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
            /** @description `ready`, `connecting`, `down`, or `absent` if this node is not configured to connect to it. */
            state: string;
            tools: components["schemas"]["McpToolView"][];
            /** @description `stdio` or `http`. */
            transport?: string | null;
            /** @description Why it is down. */
            why?: string | null;
        };
        McpToolView: {
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
            /**
             * @description `accepted`; `changed` and `new` are held until an administrator accepts them; `held` cannot be called at all;
             *     `missing` is not offered now.
             */
            standing: string;
            title?: string | null;
            /** @description The name on its server. */
            tool: string;
            /** @description Why it cannot be called. */
            why?: string | null;
        };
        /** @description The authenticated caller. */
        Me: {
            agent: boolean;
            /** @description What you may do with these credentials. */
            grants: string[];
            /** @description The id of your key; none in a browser session. */
            key?: string | null;
            organisation: components["schemas"]["OrganisationView"];
            user: string;
        };
        /** @enum {string} */
        MediumView: "pushover" | "webhook" | "slack" | "ntfy" | "email";
        /** @description The content of a notification. */
        MessageView: {
            /** @description Users who may answer. If empty, anyone with the right. */
            answerers?: string[];
            at: components["schemas"]["Instant"];
            event: string;
            /** @description What happens then: approve or deny. */
            on_timeout?: string | null;
            run_id: string;
            step?: string | null;
            /** @description The question of the gate, its answer, or why the run failed. */
            text: string;
            title: string;
            until?: components["schemas"]["Instant"] | null;
            workflow: string;
        };
        /** @description Which settings are required depends on the medium. */
        NewChannelRequest: {
            /** @description All events if omitted. */
            events?: components["schemas"]["TopicView"][] | null;
            medium: components["schemas"]["MediumView"];
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
        NewChannelView: components["schemas"]["ChannelView"] & {
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
        NewKeyView: components["schemas"]["KeyView"] & {
            /** @description `sw_…`. */
            key: string;
        };
        NewOrganisationRequest: {
            name: string;
            plan?: string | null;
        };
        /** @description A new organisation with the key of its first user, `admin`. The key is shown only here. */
        NewOrganisationView: components["schemas"]["OrganisationView"] & {
            admin_key: string;
        };
        NewUserRequest: {
            grants?: string[];
            name: string;
            roles?: string[];
        };
        /** @description A process that executes steps. */
        NodeView: {
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
        NotificationView: components["schemas"]["MessageView"] & {
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
            /** @description `waiting`, `sent`, `failed` or `dropped`. */
            status: string;
            user?: string | null;
        };
        OrganisationView: {
            /** Format: int64 */
            id: number;
            limits: components["schemas"]["LimitsView"];
            name: string;
            plan: string;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_ApprovalView: {
            data: {
                /**
                 * Format: int32
                 * @description Number of approvals required.
                 */
                approvals?: number;
                /** @description Who has approved so far, if several approvals are required. */
                approved_by?: string[];
                /**
                 * @description The resolved question: message, approvers, form, the `calls` that wait for an approval, and those that follow a
                 *     denial (`on_denial`).
                 */
                asks: unknown;
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
                /** @description approval, or verdict on a call that may have happened. */
                kind: string;
                /** @description Whether you may answer it. */
                mine: boolean;
                /** @description What happens then: approve or deny. Null if it waits as long as the run lasts. */
                on_timeout?: string | null;
                run_id: string;
                since: components["schemas"]["Instant"];
                step: string;
                until?: components["schemas"]["Instant"] | null;
                /** Format: int32 */
                version?: number;
                /** @description Why it may not reach anyone who can answer it. */
                warnings?: string[];
                workflow: string;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_AuditView: {
            data: {
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
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_ChannelView: {
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                events: components["schemas"]["TopicView"][];
                id: string;
                medium: components["schemas"]["MediumView"];
                name: string;
                /** @description Belongs to the organisation, not to a single user. */
                organisation: boolean;
                /** @description A shortened target, enough to tell it from others. */
                target: string;
                /** @description The owner. */
                user?: string | null;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_ConnectionView: {
            data: {
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
                /** @description `postgres` or `sqlite`. */
                scheme: string;
                sealed_with: string;
                /**
                 * Format: int64
                 * @description Maximum duration of a statement in milliseconds, if lower than the server's limit.
                 */
                timeout_ms?: number | null;
                /** @description Whether statements may write. */
                write: boolean;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_Event: {
            data: {
                at: components["schemas"]["Instant"];
                run_id: string;
                step?: string | null;
                /** @description created, started, entered, retrying, again, finished, skipped, ended, … */
                type: string;
                /**
                 * Format: int64
                 * @description The commit that contains it.
                 */
                version: number;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_KeyView: {
            data: {
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
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_McpServerView: {
            data: {
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
                /** @description `ready`, `connecting`, `down`, or `absent` if this node is not configured to connect to it. */
                state: string;
                tools: components["schemas"]["McpToolView"][];
                /** @description `stdio` or `http`. */
                transport?: string | null;
                /** @description Why it is down. */
                why?: string | null;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_NodeView: {
            data: {
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
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_NotificationView: {
            data: (components["schemas"]["MessageView"] & {
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
                /** @description `waiting`, `sent`, `failed` or `dropped`. */
                status: string;
                user?: string | null;
            })[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_OrganisationView: {
            data: {
                /** Format: int64 */
                id: number;
                limits: components["schemas"]["LimitsView"];
                name: string;
                plan: string;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_PolicyView: {
            data: {
                allow_self: boolean;
                /** Format: int32 */
                approvals: number;
                approvers: string[];
                at_most_once?: components["schemas"]["UnknownName"] | null;
                calls: string;
                created_at: components["schemas"]["Instant"];
                created_by: string;
                effect: components["schemas"]["EffectName"];
                name: string;
                rate?: components["schemas"]["RateView"] | null;
                reason?: string | null;
                timeout?: components["schemas"]["Length"] | null;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_QueryView: {
            data: {
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
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_RoleView: {
            data: {
                /** @description Built in; cannot be changed. */
                built_in: boolean;
                grants: string[];
                name: string;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_RunSummary: {
            data: {
                /** @description Started by a step of another run. */
                child: boolean;
                created_at: components["schemas"]["Instant"];
                created_by: string;
                finished_at?: components["schemas"]["Instant"] | null;
                id: string;
                labels: {
                    [key: string]: string;
                };
                started_at?: components["schemas"]["Instant"] | null;
                status: string;
                workflow: string;
                /** @description The workflow was deleted since. */
                workflow_deleted_at?: components["schemas"]["Instant"];
                workflow_id: string;
                /** Format: int32 */
                workflow_version: number;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_ScheduleSummary: {
            data: {
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
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_SecretView: {
            data: {
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
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_String: {
            data: string[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_UserView: {
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                disabled: boolean;
                /** @description In addition to the grants of the roles. */
                grants: string[];
                id: string;
                name: string;
                roles: string[];
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_VersionView: {
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                /** @description As its author wrote it, JSON or YAML. */
                source: string;
                /** Format: int32 */
                version: number;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_WorkflowSummary: {
            data: {
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
                trigger: string;
                /** @description api, webhook, cron or at. */
                triggers: string[];
                /** @description When this version was stored. */
                updated_at: components["schemas"]["Instant"];
                /** Format: int32 */
                version: number;
            }[];
            next?: string | null;
        };
        /** @description One page. Pass `next` as `cursor` to get the following page; the last page has none. */
        Page_WorkflowToolView: {
            data: {
                accepted_at?: components["schemas"]["Instant"] | null;
                accepted_by?: string | null;
                /** Format: int32 */
                accepted_version?: number | null;
                /** @description Who defined that version. */
                defined_by: string;
                description?: string | null;
                input_schema?: Record<string, never> | null;
                /** @description The name of the tool. */
                name: string;
                /** @description Whether agents are offered it: accepted, and the workflow enabled. */
                offered: boolean;
                /**
                 * @description `accepted`; `changed` and `new` were defined by an agent and are held until a person accepts them; `held` if
                 *     the name belongs to another tool.
                 */
                standing: string;
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
            }[];
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
            limits: components["schemas"]["LimitsView"] | null;
            /** @default null */
            plan: string | null;
        };
        /** @description An organisation's rule for calls. Applies regardless of the workflow. */
        PolicyRequest: {
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
            at_most_once?: components["schemas"]["UnknownName"];
            /** @description The calls it applies to: `tool:PATTERN`, `host:PATTERN` or `connection:PATTERN`. */
            calls: string;
            effect: components["schemas"]["EffectName"];
            rate?: components["schemas"]["RateView"];
            /** @description Explanation for the people it stops. */
            reason?: string | null;
            timeout?: components["schemas"]["Length"] | null;
        };
        PolicyView: {
            allow_self: boolean;
            /** Format: int32 */
            approvals: number;
            approvers: string[];
            at_most_once?: components["schemas"]["UnknownName"] | null;
            calls: string;
            created_at: components["schemas"]["Instant"];
            created_by: string;
            effect: components["schemas"]["EffectName"];
            name: string;
            rate?: components["schemas"]["RateView"] | null;
            reason?: string | null;
            timeout?: components["schemas"]["Length"] | null;
        };
        /** @description Which events you are notified of, and where. Only the given fields are changed. */
        PreferencesView: {
            /**
             * @description In a connected browser.
             * @default null
             */
            browser: components["schemas"]["TopicView"][] | null;
            /**
             * @description By the id of the channel.
             * @default {}
             */
            channels: {
                [key: string]: components["schemas"]["TopicView"][];
            };
        };
        /** @description An error, for programs (`code`) and for people (`detail`). */
        ProblemView: {
            /** @description Stable, unlike the text. */
            code: string;
            detail: string;
            /** @description Everything wrong with the request, if the input was invalid. */
            errors?: components["schemas"]["FaultView"][];
            /** @description Identifies the request in the log. */
            request_id?: string | null;
            /** Format: int32 */
            status: number;
            /** @description The current status of the run, if it no longer allows the request. */
            status_now?: string | null;
            title: string;
            /** @description Link to the documentation of the code. */
            type: string;
            /** @description What is suspicious in a definition beside its errors. */
            warnings?: components["schemas"]["FaultView"][];
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
        QueryView: {
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
        /** @description A number of calls in a period. */
        RateView: {
            /** Format: int32 */
            calls: number;
            per: components["schemas"]["Length"];
        };
        /** @description The response to an accepted call. */
        Received: {
            received: boolean;
        };
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
        RoleRequest: {
            grants: string[];
        };
        RoleView: {
            /** @description Built in; cannot be changed. */
            built_in: boolean;
            grants: string[];
            name: string;
        };
        /** @description The result of a master key rotation. */
        RotatedView: {
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
        /** @description A run in full. */
        Run: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            erased_at?: components["schemas"]["Instant"] | null;
            error?: components["schemas"]["ErrorView"] | null;
            finished_at?: components["schemas"]["Instant"] | null;
            /**
             * Format: int32
             * @description Increases with each retry of the run.
             */
            generation: number;
            id: string;
            input: unknown;
            labels: {
                [key: string]: string;
            };
            output?: unknown;
            /** @description The step of another run that started it, as long as that run exists. */
            parent?: components["schemas"]["ParentStep"];
            started_at?: components["schemas"]["Instant"] | null;
            /** @description queued, running, paused, completed, failed, cancelled or timeout. */
            status: string;
            /** @description By name; steps inside loops by path, such as `each[3].charge`. */
            tasks: {
                [key: string]: components["schemas"]["Step"];
            };
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
            /** @default null */
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
        /** @description A run as lists show it. */
        RunSummary: {
            /** @description Started by a step of another run. */
            child: boolean;
            created_at: components["schemas"]["Instant"];
            created_by: string;
            finished_at?: components["schemas"]["Instant"] | null;
            id: string;
            labels: {
                [key: string]: string;
            };
            started_at?: components["schemas"]["Instant"] | null;
            status: string;
            workflow: string;
            /** @description The workflow was deleted since. */
            workflow_deleted_at?: components["schemas"]["Instant"];
            workflow_id: string;
            /** Format: int32 */
            workflow_version: number;
        };
        /** @description A run that also has its id under the name used by trigger responses. */
        RunWithId: components["schemas"]["Run"] & {
            run_id: string;
        };
        /** @description A schedule and its next ticks. */
        ScheduleSummary: {
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
        /** @description A secret. Its value is never shown. */
        SecretView: {
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
        Step: {
            /** Format: int32 */
            attempt: number;
            /** @description All attempts, oldest first; only if there were several. */
            attempts?: components["schemas"]["Attempt"][];
            /** Format: int64 */
            duration_ms?: number | null;
            error?: components["schemas"]["ErrorView"] | null;
            finished_at?: components["schemas"]["Instant"] | null;
            /** @description For `POST /api/v1/steps/{id}/ready`. */
            id: string;
            input?: unknown;
            /** @description The output was longer than 256 KB and is stored truncated. */
            is_truncated?: boolean;
            kind: string;
            /** @description The lines that the step's code wrote with `console`. */
            log?: components["schemas"]["LogLine"][];
            output?: unknown;
            started_at?: components["schemas"]["Instant"] | null;
            status: string;
            /** Format: int32 */
            status_code?: number | null;
        };
        /** @description A step of the definition. */
        TaskView: {
            kind: string;
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
        TestView: {
            arrived: boolean;
            error?: string | null;
        };
        /**
         * @description Events that people can be notified of.
         * @enum {string}
         */
        TopicView: "gate_opened" | "gate_escalated" | "gate_answered" | "gate_expired" | "run_failed";
        /** @description A run that was just started. */
        Triggered: {
            run_id: string;
            started_at?: components["schemas"]["Instant"];
            status: string;
            workflow: string;
            workflow_id: string;
            /** Format: int32 */
            workflow_version: number;
        };
        /**
         * @description What to do if it is unknown whether a call was made.
         * @enum {string}
         */
        UnknownName: "fail" | "ask";
        UsageView: {
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
            organisation: components["schemas"]["OrganisationView"];
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
        UserView: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            disabled: boolean;
            /** @description In addition to the grants of the roles. */
            grants: string[];
            id: string;
            name: string;
            roles: string[];
        };
        /** @enum {string} */
        VerdictName: "happened" | "run_again" | "fail";
        /** @description A person's verdict on a call that may have happened and must not be repeated. */
        VerdictRequest: {
            /** @description The result of the call, if it happened. */
            output?: unknown;
            verdict: components["schemas"]["VerdictName"];
        };
        /** @description One version of a workflow. */
        VersionView: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            /** @description As its author wrote it, JSON or YAML. */
            source: string;
            /** Format: int32 */
            version: number;
        };
        Waiting: {
            /** @description queue, executor, retry, sleep, webhook, approval, verdict, child or turn (the next transition of the run). */
            for: string;
            /** @description Why the last attempt failed, or what the called service says about its progress. */
            message?: string | null;
            /** @description Who or what can make it continue. */
            moved_on_by: string;
            since?: components["schemas"]["Instant"] | null;
            /** @description Path of the step; empty for the run itself. */
            step: string;
            until?: components["schemas"]["Instant"] | null;
        };
        /** @description A problem that does not stop the run. */
        Warning: {
            message: string;
            /** @description Path of the step. */
            step: string;
        };
        /** @description What is suspicious in a definition that is valid. */
        WarningsView: {
            warnings: components["schemas"]["FaultView"][];
        };
        /** @description A workflow with its definition. */
        Workflow: components["schemas"]["WorkflowSummary"] & {
            /** @description The parsed source. */
            definition: unknown;
            /** @description tasks, flow or graph. */
            dialect: string;
            input_schema?: unknown;
            /** @description Concurrency keys whose new runs wait. */
            paused_keys?: components["schemas"]["PausedKey"][];
            /** @description As its author wrote it, JSON or YAML. */
            source: string;
            /** @description By name, for any dialect. */
            steps: {
                [key: string]: components["schemas"]["TaskView"];
            };
            /** @description Its tasks as written, if it uses the tasks dialect. */
            tasks?: unknown;
            /** @description URLs that start it; only for callers who may change it. */
            webhooks?: string[];
        };
        /** @description A workflow as lists show it. */
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
            trigger: string;
            /** @description api, webhook, cron or at. */
            triggers: string[];
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
        /** @description A workflow that is exposed as a tool. */
        WorkflowToolView: {
            accepted_at?: components["schemas"]["Instant"] | null;
            accepted_by?: string | null;
            /** Format: int32 */
            accepted_version?: number | null;
            /** @description Who defined that version. */
            defined_by: string;
            description?: string | null;
            input_schema?: Record<string, never> | null;
            /** @description The name of the tool. */
            name: string;
            /** @description Whether agents are offered it: accepted, and the workflow enabled. */
            offered: boolean;
            /**
             * @description `accepted`; `changed` and `new` were defined by an agent and are held until a person accepts them; `held` if
             *     the name belongs to another tool.
             */
            standing: string;
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
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    get_approvals: {
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
                    "application/json": components["schemas"]["Page_ApprovalView"];
                };
            };
        };
    };
    get_audit: {
        parameters: {
            query?: {
                by?: string;
                /** @description For example `run.cancel` */
                action?: string;
                /** @description The target of the action */
                target?: string;
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
                    "application/json": components["schemas"]["Page_AuditView"];
                };
            };
        };
    };
    get_audit_verify: {
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
    get_channels: {
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
                    "application/json": components["schemas"]["Page_ChannelView"];
                };
            };
        };
    };
    post_channels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
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
                    "application/json": components["schemas"]["Data_NewChannelView"];
                };
            };
        };
    };
    delete_channels_channel: {
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
    post_channels_channel_test: {
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
                    "application/json": components["schemas"]["Data_TestView"];
                };
            };
        };
    };
    post_check: {
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
                "application/json": unknown;
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
                    "application/json": components["schemas"]["Data_WarningsView"];
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
    get_connections: {
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
                    "application/json": components["schemas"]["Page_ConnectionView"];
                };
            };
        };
    };
    get_connections_connection: {
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
                    "application/json": components["schemas"]["Data_ConnectionView"];
                };
            };
        };
    };
    put_connections_connection: {
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
                    "application/json": components["schemas"]["Data_ConnectionView"];
                };
            };
        };
    };
    delete_connections_connection: {
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
    get_events: {
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
                    "text/event-stream": string;
                };
            };
        };
    };
    get_keys: {
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
                    "application/json": components["schemas"]["Page_KeyView"];
                };
            };
        };
    };
    post_keys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
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
                    "application/json": components["schemas"]["Data_NewKeyView"];
                };
            };
        };
    };
    delete_keys_key: {
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
    patch_keys_key: {
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
                    "application/json": components["schemas"]["Data_KeyView"];
                };
            };
        };
    };
    post_master_key_rotate: {
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
                    "application/json": components["schemas"]["Data_RotatedView"];
                };
            };
        };
    };
    get_mcp_servers: {
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
                    "application/json": components["schemas"]["Page_McpServerView"];
                };
            };
        };
    };
    get_mcp_servers_server: {
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
                    "application/json": components["schemas"]["Data_McpServerView"];
                };
            };
        };
    };
    post_mcp_servers_server_accept: {
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
                    "application/json": components["schemas"]["Data_McpServerView"];
                };
            };
        };
    };
    get_me: {
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
    get_nodes: {
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
                    "application/json": components["schemas"]["Page_NodeView"];
                };
            };
        };
    };
    get_notifications: {
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
                    "application/json": components["schemas"]["Page_NotificationView"];
                };
            };
        };
    };
    get_organisations: {
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
                    "application/json": components["schemas"]["Page_OrganisationView"];
                };
            };
        };
    };
    post_organisations: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
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
                    "application/json": components["schemas"]["Data_NewOrganisationView"];
                };
            };
        };
    };
    put_organisations_id_plan: {
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
                    "application/json": components["schemas"]["Data_OrganisationView"];
                };
            };
        };
    };
    get_policies: {
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
                    "application/json": components["schemas"]["Page_PolicyView"];
                };
            };
        };
    };
    get_policies_policy: {
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
                    "application/json": components["schemas"]["Data_PolicyView"];
                };
            };
        };
    };
    put_policies_policy: {
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
                    "application/json": components["schemas"]["Data_PolicyView"];
                };
            };
        };
    };
    delete_policies_policy: {
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
    get_preferences: {
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
                    "application/json": components["schemas"]["Data_PreferencesView"];
                };
            };
        };
    };
    patch_preferences: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreferencesView"];
            };
        };
        responses: {
            /** @description Changed */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_PreferencesView"];
                };
            };
        };
    };
    get_queries: {
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
                    "application/json": components["schemas"]["Page_QueryView"];
                };
            };
        };
    };
    get_queries_query: {
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
                    "application/json": components["schemas"]["Data_QueryView"];
                };
            };
        };
    };
    put_queries_query: {
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
                    "application/json": components["schemas"]["Data_QueryView"];
                };
            };
        };
    };
    delete_queries_query: {
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
    get_roles: {
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
                    "application/json": components["schemas"]["Page_RoleView"];
                };
            };
        };
    };
    put_roles_role: {
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
                    "application/json": components["schemas"]["Data_RoleView"];
                };
            };
        };
    };
    delete_roles_role: {
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
    get_runs: {
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
    post_runs_cancel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
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
    post_runs_retry: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
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
    get_runs_run: {
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
    patch_runs_run: {
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
    post_runs_run_cancel: {
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
    post_runs_run_erase: {
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
    get_runs_run_events: {
        parameters: {
            query?: {
                /** @description Only events after this version of the run */
                after?: number;
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
    get_runs_run_graph: {
        parameters: {
            query?: never;
            header?: never;
            path: {
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
                    "application/json": components["schemas"]["Data_GraphView"];
                };
            };
        };
    };
    post_runs_run_release: {
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
    post_runs_run_rerun: {
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
                    "application/json": components["schemas"]["Data_RunWithId"];
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
                    "application/json": components["schemas"]["Data_RunWithId"];
                };
            };
        };
    };
    get_runs_run_retry: {
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
    post_runs_run_retry: {
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
                    "application/json": components["schemas"]["Data_RunWithId"];
                };
            };
        };
    };
    get_runs_run_steps_step_approval: {
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
                    "application/json": components["schemas"]["Data_ApprovalView"];
                };
            };
        };
    };
    post_runs_run_steps_step_approve: {
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
    post_runs_run_steps_step_deliver: {
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
    post_runs_run_steps_step_deny: {
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
    post_runs_run_steps_step_finish: {
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
    post_runs_run_steps_step_link: {
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
                    "application/json": components["schemas"]["Data_LinkView"];
                };
            };
        };
    };
    post_runs_run_steps_step_verdict: {
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
    get_runs_run_stream: {
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
                    "text/event-stream": string;
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
    get_schedules: {
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
    get_secrets: {
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
                    "application/json": components["schemas"]["Page_SecretView"];
                };
            };
        };
    };
    get_secrets_secret: {
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
                    "application/json": components["schemas"]["Data_SecretView"];
                };
            };
        };
    };
    put_secrets_secret: {
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
                    "application/json": components["schemas"]["Data_SecretView"];
                };
            };
        };
    };
    delete_secrets_secret: {
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
    post_sign_in_links: {
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
                    "application/json": components["schemas"]["Data_LinkView"];
                };
            };
        };
    };
    post_sign_out: {
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
    post_steps_step_approve: {
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
    post_steps_step_deny: {
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
    post_steps_step_ready: {
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
    post_test_runs: {
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
                    "application/json": components["schemas"]["Data_RunWithId"];
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
                    "application/json": components["schemas"]["Data_RunWithId"];
                };
            };
        };
    };
    delete_test_runs_run: {
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
    get_tools: {
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
                    "application/json": components["schemas"]["Page_WorkflowToolView"];
                };
            };
        };
    };
    get_usage: {
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
                    "application/json": components["schemas"]["Data_UsageView"];
                };
            };
        };
    };
    get_users: {
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
                    "application/json": components["schemas"]["Page_UserView"];
                };
            };
        };
    };
    post_users: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
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
                    "application/json": components["schemas"]["Data_UserView"];
                };
            };
        };
    };
    get_users_user: {
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
                    "application/json": components["schemas"]["Data_UserView"];
                };
            };
        };
    };
    delete_users_user: {
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
    patch_users_user: {
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
                    "application/json": components["schemas"]["Data_UserView"];
                };
            };
        };
    };
    get_workflows: {
        parameters: {
            query?: {
                /** @description `name=value`; a workflow must have all of several separated by commas */
                label?: string;
                /** @description Part of the name. */
                q?: string;
                /** @description Deleted workflows instead of the others, latest deletion first. */
                deleted?: boolean;
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
                    "application/json": components["schemas"]["Page_WorkflowSummary"];
                };
            };
        };
    };
    post_workflows: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The definition */
        requestBody: {
            content: {
                "application/json": unknown;
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
                    "application/json": components["schemas"]["DefinedView"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DefinedView"];
                };
            };
        };
    };
    get_workflows_id: {
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
    put_workflows_id: {
        parameters: {
            query?: never;
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
                "application/json": unknown;
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
                    "application/json": components["schemas"]["DefinedView"];
                };
            };
            /** @description Created: there was no workflow with that name */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DefinedView"];
                };
            };
        };
    };
    delete_workflows_id: {
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
    patch_workflows_id: {
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
    post_workflows_id_accept_tool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name or id */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AcceptToolRequest"];
            };
        };
        responses: {
            /** @description The tool */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowToolView"];
                };
            };
        };
    };
    get_workflows_id_graph: {
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
                    "application/json": components["schemas"]["Data_GraphView"];
                };
            };
        };
    };
    post_workflows_id_pause: {
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
    post_workflows_id_restore: {
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
    post_workflows_id_resume: {
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
    post_workflows_id_rotate_webhooks: {
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
    get_workflows_id_runs: {
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
    get_workflows_id_runs_run: {
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
    post_workflows_id_runs_run_cancel: {
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
    get_workflows_id_schedule: {
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
    post_workflows_id_trigger: {
        parameters: {
            query?: {
                /** @description How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same */
                wait?: string;
                /** @description Labels of the run: `name=value`, several separated by commas */
                label?: string;
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
                    "application/json": components["schemas"]["Data_RunWithId"];
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
                    "application/json": components["schemas"]["Data_RunWithId"];
                };
            };
        };
    };
    get_workflows_id_versions: {
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
                    "application/json": components["schemas"]["Page_VersionView"];
                };
            };
        };
    };
    get_workflows_id_versions_version: {
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
                    "application/json": components["schemas"]["Data_VersionView"];
                };
            };
        };
    };
    get_ws: {
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
    get_approve_token: {
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
    post_approve_token: {
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
                "application/x-www-form-urlencoded": string;
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
    post_in_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last part of the URL */
                token: string;
            };
            cookie?: never;
        };
        /** @description The run's input */
        requestBody: {
            content: {
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
    get_sign_in_link: {
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
    get_wh_token: {
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
    post_wh_token: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The last part of the URL */
                token: string;
            };
            cookie?: never;
        };
        /** @description The step's result */
        requestBody: {
            content: {
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
