// Made by `npm run api` from openapi.json: the types of the server's API. Not edited by hand.

export interface paths {
    "/api/v1/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What people of the organisation are asked, oldest first */
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
        /** Who did what, newest first; for administrators */
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
        /** Whether the audit trail was tampered with: follows its hashes from the first row to the last */
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
        /** Make a channel; a webhook's secret is shown now and never again */
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
        /** Remove a channel; what waits for it is told to nobody */
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
        /** Check a definition without keeping it: 204, or 422 with everything that is wrong with it */
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
        /** Make a connection, or make it another one; a SQLite file needs the right `operator` */
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
         * @description Server-sent events as those of a run; ids are places in the log of all runs. Events of one run come in their order.
         *     What concerns you yourself, such as a gate that you may answer, also comes as `notification`.
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
        /** API keys: all of the organisation for administrators, their own for others */
        get: operations["get_keys"];
        put?: never;
        /** Make an API key; it is in the answer and never shown again */
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
        /** Revoke a key for good */
        delete: operations["delete_keys_key"];
        options?: never;
        head?: never;
        /** Rename a key, pause it or let it work again */
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
        /** Seal everything anew under the first of the server's master keys; for those who run the server */
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
        /** The MCP servers of the organisation as this node sees them, with their tools */
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
        /** Accept what a server offers now: tools that are new or have changed can be called from then on */
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
        /** Who you are here, and what you may do */
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
        /** The nodes that are alive: processes that execute steps on the same data */
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
        /** What became of notifications, newest first: yours, or all of the organisation if you administer it */
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
        /** All organisations of this server; for its operators */
        get: operations["get_organisations"];
        put?: never;
        /** Make an organisation with a first user `admin`, whose key is in the answer and never shown again */
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
        /** Give an organisation another plan, or limits of its own; for operators */
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
        /** What the organisation says about calls, whatever its workflows say */
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
        /** Make a policy, or give it another content; it counts from the next call on */
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
        /** What you are told of, and where */
        get: operations["get_preferences"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Choose what you are told of; what is not given stays as it is */
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
        /** Save a query, or make it another one; it counts from the next step on */
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
        /** Roles: named sets of grants, those that come with the product first */
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
        /** Make a role, or give it other grants */
        put: operations["put_roles_role"];
        post?: never;
        /** Remove a role that nobody has */
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
        /** Cancel every run that fits and has not ended, up to 10,000 */
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
        /** Retry every run that fits and did not complete, up to 10,000 */
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
        /** Give a run other labels */
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
        /** Cancel a run: what runs is stopped, the rest does not begin */
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
        /** Take away everything a finished run was given and gave back; its log and their digests stay */
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
        /** The graph of the version that a run is of */
        get: operations["get_runs_run_graph"];
        put?: never;
        post?: never;
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
         * Start a fresh run with the same input
         * @description A body, if there is one, is the input instead.
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
        /** Which steps would stand if the run went on under the newest version, and which would run again */
        get: operations["get_runs_run_retry"];
        put?: never;
        /** Go on with a run that failed, timed out or was cancelled: what did not succeed runs again */
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
        /** What one step asks, with the digest that an answer names */
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
        /** End a step that is stuck, with a given result; for administrators, and logged */
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
        /** Make a link by which somebody can answer without a key: you, or as an administrator anyone who may */
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
        /** Say what became of a call that may have happened */
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
         * All events of a run as they happen, from its beginning or from where you stopped
         * @description Server-sent events: `event` is the type of the fact, `data` is the event as JSON, `id` is what to send as
         *     `Last-Event-ID` to go on after it. When the run has ended, an event `end` with its status follows, and the stream is
         *     over. Whoever comes back after that gets 204.
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
        /** Make a secret, or give it another value or other hosts; it counts from the next step on */
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
        /** Make a link that signs a browser in as you, once, within a day */
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
        /** One signal for whatever a step waits for: a gate is approved, a sleep ends, a wait gets an empty call */
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
        /** Run a definition that is not saved, apart from real runs */
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
        /** Stop a test run and remove all of it */
        delete: operations["delete_test_runs_run"];
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
        /** What the organisation has used of its plan */
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
        /** Make a user */
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
        /** Disable a user for good: what they did stays theirs */
        delete: operations["delete_users_user"];
        options?: never;
        head?: never;
        /** Give a user other roles or grants, or disable them; it counts from the next step of their runs on */
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
         * Make a workflow from its definition, JSON or YAML in any dialect
         * @description 201 for a new workflow, 200 if it is there just so, 409 if there is another of that name: then `PUT` makes its next
         *     version.
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
        /** A workflow with its definition */
        get: operations["get_workflows_id"];
        /**
         * Make the next version of a workflow, or the first
         * @description Runs under way keep the version they started with. With `If-Match` only if the workflow is still as it says.
         */
        put: operations["put_workflows_id"];
        post?: never;
        /** Delete a workflow; its runs go on to their end */
        delete: operations["delete_workflows_id"];
        options?: never;
        head?: never;
        /**
         * Enable or disable a workflow
         * @description A disabled workflow refuses triggers and skips its schedule. Nothing of it is lost.
         */
        patch: operations["patch_workflows_id"];
        trace?: never;
    };
    "/api/v1/workflows/{id}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The graph of a workflow, whatever its dialect */
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
        /** Hold new runs of a workflow, or of one concurrency key: they are taken and wait in the queue */
        post: operations["post_workflows_id_pause"];
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
        /** Let go what was held */
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
        /** Give a workflow new webhook addresses; the old ones lead nowhere from now on */
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
        /** When a workflow will start by itself: the next ten fires of each schedule */
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
         * @description 201 for a new run, 200 if the `Idempotency-Key` started one before with the same body (409 with another). With `wait`:
         *     200 with the finished run, or 202 with the running one when the time is up.
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
         * A WebSocket on which runs can be joined
         * @description Send `{"event": "workflow_run_join", "data": {"runId": "run_…"}}` or `workflow_run_leave`. You get
         *     `workflow_node_update` and `workflow_status_update` for how the run is, then for each change; `notification` for what
         *     concerns you yourself, joined or not; and `error` with a problem for what cannot be done.
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
         * A page that shows what is asked; it decides nothing
         * @description Refusals are pages for those who accept pages, and problems for others.
         */
        get: operations["get_approve_token"];
        put?: never;
        /** Answer what the page shows; it counts once */
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
        /** Start a workflow by calling its address; any content type */
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
        /** Sign a browser in with a link; the link is used up */
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
        /** A page for people who open the address in a browser: it delivers nothing */
        get: operations["get_wh_token"];
        put?: never;
        /**
         * Deliver the call that a step waits for
         * @description A call that comes before its step is kept. 409 if one was delivered already, 410 if the step or the run is over.
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
        /** @description What to accept of what a server offers now. */
        AcceptRequest: {
            /**
             * @description All that it offers if there is none.
             * @default []
             */
            tools: components["schemas"]["AcceptedTool"][];
        };
        AcceptedTool: {
            /** @description Of what was looked at: refused if the server offers something else by now. */
            digest?: string | null;
            /** @description As its server knows it. */
            tool: string;
        };
        AnswerRequest: {
            /** @default null */
            comment: string | null;
            /** @description What the gate's form asks for. */
            data?: unknown;
            /**
             * @description Of what was seen, as `GET …/approval` shows it. Needed where something was asked before, or a call is held.
             * @default null
             */
            digest: string | null;
        };
        /** @description What a person is asked. */
        ApprovalView: {
            /**
             * Format: int32
             * @description How many have to approve.
             */
            approvals?: number;
            /** @description Who approved so far, where several have to. */
            approved_by?: string[];
            /** @description What they are asked, resolved: message, approvers, form, and the calls that an approval is for. */
            asks: unknown;
            /** Format: int32 */
            attempt: number;
            created_by: string;
            /** @description Of all that is shown: an answer names it. */
            digest?: string | null;
            /** @description They are asked. */
            escalated?: boolean;
            escalates_at?: components["schemas"]["Instant"] | null;
            /** @description For `POST /api/v1/steps/{id}/ready`. */
            id: string;
            /** @description approval, or verdict on a call that may have happened. */
            kind: string;
            /** @description Whether you may answer it. */
            mine: boolean;
            run_id: string;
            since: components["schemas"]["Instant"];
            step: string;
            until?: components["schemas"]["Instant"] | null;
            /** Format: int32 */
            version?: number;
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
             * @description The first row whose hash does not follow; none is good.
             */
            broken_at?: number | null;
            /** Format: int64 */
            rows: number;
        };
        AuditView: {
            /** @description Such as `run.cancel`. */
            action: string;
            at: components["schemas"]["Instant"];
            by: string;
            detail: unknown;
            /** @description Covers this row and the one before. */
            hash: string;
            /** Format: int64 */
            id: number;
            /** @description What it was done to. */
            target: string;
        };
        BulkRefusal: {
            reason: string;
            run_id: string;
        };
        BulkRequest: {
            /** @description Which runs, as lists take it. An empty one means all: say so with `{}`. */
            filter: components["schemas"]["RunFilters"];
            /** @description For retries: go on under the newest version. */
            newest?: boolean;
            reason?: string | null;
        };
        /** @description What came of a call about many runs. */
        BulkResult: {
            /** @description Runs it was done to. */
            done: string[];
            /** @description There are more than one call may be about: ask again. */
            more: boolean;
            refused: components["schemas"]["BulkRefusal"][];
        };
        CancelRequest: {
            /**
             * @description For whoever asks later.
             * @default null
             */
            reason: string | null;
        };
        /** @description A channel, without what opens it. */
        ChannelView: {
            created_at: components["schemas"]["Instant"];
            created_by: string;
            events: components["schemas"]["TopicView"][];
            id: string;
            medium: components["schemas"]["MediumView"];
            name: string;
            /** @description The organisation's, not somebody's own. */
            organisation: boolean;
            /** @description Enough to tell it from others. */
            target: string;
            /** @description Whose it is. */
            user?: string | null;
        };
        /** @description What a connection is set to. */
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
             * @description `postgres://…` or `sqlite:/path`, with `{{secrets.NAME}}` where need be. The one it has, if none is given.
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
            /** @description Its name, or for SQLite its path. */
            database: string;
            host?: string | null;
            id: string;
            name: string;
            /**
             * Format: int32
             * @description The most rows that a query may give, if it is less than what the server allows.
             */
            rows?: number | null;
            /** @description `postgres` or `sqlite`. */
            scheme: string;
            sealed_with: string;
            /**
             * Format: int64
             * @description Milliseconds that a statement may take, if it is less than what the server allows.
             */
            timeout_ms?: number | null;
            /** @description Whether statements may write. */
            write: boolean;
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_ApprovalView: {
            /** @description What a person is asked. */
            data: {
                /**
                 * Format: int32
                 * @description How many have to approve.
                 */
                approvals?: number;
                /** @description Who approved so far, where several have to. */
                approved_by?: string[];
                /** @description What they are asked, resolved: message, approvers, form, and the calls that an approval is for. */
                asks: unknown;
                /** Format: int32 */
                attempt: number;
                created_by: string;
                /** @description Of all that is shown: an answer names it. */
                digest?: string | null;
                /** @description They are asked. */
                escalated?: boolean;
                escalates_at?: components["schemas"]["Instant"] | null;
                /** @description For `POST /api/v1/steps/{id}/ready`. */
                id: string;
                /** @description approval, or verdict on a call that may have happened. */
                kind: string;
                /** @description Whether you may answer it. */
                mine: boolean;
                run_id: string;
                since: components["schemas"]["Instant"];
                step: string;
                until?: components["schemas"]["Instant"] | null;
                /** Format: int32 */
                version?: number;
                workflow: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_AuditVerdict: {
            /** @description Whether the audit trail was tampered with. */
            data: {
                /**
                 * Format: int64
                 * @description The first row whose hash does not follow; none is good.
                 */
                broken_at?: number | null;
                /** Format: int64 */
                rows: number;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_BulkResult: {
            /** @description What came of a call about many runs. */
            data: {
                /** @description Runs it was done to. */
                done: string[];
                /** @description There are more than one call may be about: ask again. */
                more: boolean;
                refused: components["schemas"]["BulkRefusal"][];
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_ConnectionView: {
            /** @description A database for query steps. Its URL is never shown. */
            data: {
                changed_at: components["schemas"]["Instant"];
                changed_by: string;
                created_at: components["schemas"]["Instant"];
                /** @description Its name, or for SQLite its path. */
                database: string;
                host?: string | null;
                id: string;
                name: string;
                /**
                 * Format: int32
                 * @description The most rows that a query may give, if it is less than what the server allows.
                 */
                rows?: number | null;
                /** @description `postgres` or `sqlite`. */
                scheme: string;
                sealed_with: string;
                /**
                 * Format: int64
                 * @description Milliseconds that a statement may take, if it is less than what the server allows.
                 */
                timeout_ms?: number | null;
                /** @description Whether statements may write. */
                write: boolean;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_GraphView: {
            /** @description The steps of a version and what leads to what, whatever the dialect. Steps are named by their place in `nodes`. */
            data: {
                edges: components["schemas"]["GraphEdge"][];
                name: string;
                nodes: components["schemas"]["GraphNode"][];
                /**
                 * Format: int32
                 * @description Of the workflow.
                 */
                version: number;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_KeyView: {
            data: {
                /** @description Never answers gates unless it has `workflow.approve` by name. */
                agent: boolean;
                created_at: components["schemas"]["Instant"];
                created_by: string;
                expires_at?: components["schemas"]["Instant"] | null;
                /** @description What it leaves of its user's grants; all of them if there is no list. */
                grants?: string[] | null;
                id: string;
                last_used_at?: components["schemas"]["Instant"] | null;
                name: string;
                paused: boolean;
                revoked_at?: components["schemas"]["Instant"] | null;
                /** @description How the key begins. */
                start: string;
                user: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_LinkView: {
            /** @description A link that signs a browser in, once. */
            data: {
                url: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_McpServerView: {
            /** @description An MCP server whose tools steps can call, as this node sees it. */
            data: {
                /** @description What it calls itself. */
                about?: string | null;
                /**
                 * Format: int32
                 * @description How often this node connected to it.
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
        /** @description An answer: what was asked for is in `data`. */
        Data_Me: {
            /** @description Who you are here. */
            data: {
                agent: boolean;
                /** @description What you may do with what you showed. */
                grants: string[];
                /** @description The id of the key you came with; none in a browser. */
                key?: string | null;
                organisation: components["schemas"]["OrganisationView"];
                user: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_NewChannelView: {
            /** @description A new channel. */
            data: components["schemas"]["ChannelView"] & {
                /** @description `whsec_…`: what calls of a webhook are signed with. Shown here and never again. */
                secret?: string | null;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_NewKeyView: {
            /** @description A new key. The key itself is shown here and never again. */
            data: components["schemas"]["KeyView"] & {
                /** @description `sw_…`. */
                key: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_NewOrganisationView: {
            /** @description A new organisation with the key of its first user, `admin`, which is never shown again. */
            data: components["schemas"]["OrganisationView"] & {
                admin_key: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_OrganisationView: {
            data: {
                /** Format: int64 */
                id: number;
                limits: components["schemas"]["LimitsView"];
                name: string;
                plan: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
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
        /** @description An answer: what was asked for is in `data`. */
        Data_PreferencesView: {
            /** @description What you are told of, and where. What is given is changed. */
            data: {
                /**
                 * @description In a browser that is connected.
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
        /** @description An answer: what was asked for is in `data`. */
        Data_QueryView: {
            /** @description A statement that query steps use by its name. */
            data: {
                changed_at: components["schemas"]["Instant"];
                changed_by: string;
                connection: string;
                created_at: components["schemas"]["Instant"];
                id: string;
                name: string;
                /** @description Values of named parameters, for steps that give none. */
                params: {
                    [key: string]: unknown;
                };
                /**
                 * Format: int32
                 * @description The most rows that it gives, unless the step says otherwise.
                 */
                rows?: number | null;
                sql: string;
                /** @description Whether it writes. */
                write: boolean;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_Received: {
            /** @description That a call was taken. */
            data: {
                received: boolean;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_RetryPreview: {
            /** @description What a retry on the newest version would keep. */
            data: {
                /** @description Steps that would run again. */
                again: string[];
                /** @description Steps whose results stand. */
                stands: string[];
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_RoleView: {
            data: {
                /** @description Comes with the product and cannot be changed. */
                built_in: boolean;
                grants: string[];
                name: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_RotatedView: {
            /** @description What came of sealing everything anew. */
            data: {
                /** @description The master key that everything is sealed with now. */
                key: string;
                /** @description What no key of this node opens, and why. */
                locked: string[];
                /**
                 * Format: int64
                 * @description Secrets and connections that were sealed with another one before.
                 */
                sealed: number;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
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
                 * @description Grows with each retry of the run.
                 */
                generation: number;
                id: string;
                input: unknown;
                labels: {
                    [key: string]: string;
                };
                output?: unknown;
                /** @description The step of another run that started it, while that run is kept. */
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
                 * @description Grows with everything that happens to the run.
                 */
                version: number;
                /** @description Why it is not finished; empty if it is. */
                waiting_for: components["schemas"]["Waiting"][];
                workflow: string;
                workflow_id: string;
                /** Format: int32 */
                workflow_version: number;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_RunWithId: {
            /** @description A run, with its id under the name that triggers answer with, too. */
            data: components["schemas"]["Run"] & {
                run_id: string;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_SecretView: {
            /** @description A secret. Its value is never shown. */
            data: {
                changed_at: components["schemas"]["Instant"];
                changed_by: string;
                created_at: components["schemas"]["Instant"];
                /** @description Where it may be sent; anywhere if there is none. */
                hosts: string[];
                id: string;
                /** @description Whether it is taken out of what services send back; shorter ones than 8 characters are not. */
                masked: boolean;
                name: string;
                /** @description The master key that it is sealed with. */
                sealed_with: string;
                /**
                 * Format: int32
                 * @description Counts the values it has had.
                 */
                version: number;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_TestView: {
            /** @description Whether a message arrived. */
            data: {
                arrived: boolean;
                error?: string | null;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_Triggered: {
            /** @description A run that was just started. */
            data: {
                run_id: string;
                started_at: components["schemas"]["Instant"];
                status: string;
                workflow: string;
                workflow_id: string;
                /** Format: int32 */
                workflow_version: number;
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_UsageView: {
            data: {
                /**
                 * Format: int64
                 * @description Steps executed in this month.
                 */
                executions: number;
                /** @description Such as `2026-11`. */
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
        /** @description An answer: what was asked for is in `data`. */
        Data_UserView: {
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                disabled: boolean;
                /** @description Beside those of the roles. */
                grants: string[];
                id: string;
                name: string;
                roles: string[];
            };
        };
        /** @description An answer: what was asked for is in `data`. */
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
        /** @description An answer: what was asked for is in `data`. */
        Data_Workflow: {
            /** @description A workflow with its definition. */
            data: components["schemas"]["WorkflowSummary"] & {
                /** @description The same, read. */
                definition: unknown;
                /** @description tasks, flow or graph. */
                dialect: string;
                input_schema?: unknown;
                /** @description Concurrency keys whose new runs wait. */
                paused_keys?: components["schemas"]["PausedKey"][];
                /** @description As its author wrote it, JSON or YAML. */
                source: string;
                /** @description By name, whatever the dialect. */
                steps: {
                    [key: string]: components["schemas"]["TaskView"];
                };
                /** @description Its tasks as written, if it is written in that dialect. */
                tasks?: unknown;
                /** @description Addresses that start it, for those who may change it. */
                webhooks?: string[];
            };
        };
        /** @description An answer: what was asked for is in `data`. */
        Data_WorkflowSummary: {
            /** @description A workflow as lists show it. */
            data: {
                created_by: string;
                description?: string | null;
                enabled: boolean;
                id: string;
                inserted_at: components["schemas"]["Instant"];
                labels: {
                    [key: string]: string;
                };
                name: string;
                /** @description New runs wait until it is resumed. */
                paused: boolean;
                /** Format: int32 */
                task_count: number;
                /** @description The first of `triggers`. */
                trigger: string;
                /** @description api, webhook, cron or at. */
                triggers: string[];
                /** Format: int32 */
                version: number;
            };
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
             * @description The commit it came with.
             */
            version: number;
        };
        /** @description One thing that is wrong, where, and how to mend it. */
        FaultView: {
            code?: string | null;
            /** Format: int32 */
            column?: number | null;
            hint?: string | null;
            /** Format: int32 */
            line?: number | null;
            message: string;
            /** @description Such as `tasks.send.needs[0]`. */
            path: string;
        };
        /** @description How a stuck step is said to have ended: with an output, or with an error. */
        FinishRequest: {
            /**
             * @description Why, for whoever asks later.
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
            /** @description A few words: `POST /charge`, `3d`. */
            detail: string;
            kind: string;
            name: string;
            /** @description The loop or for_each it is inside. */
            parent?: number | null;
            /** @description As runs name the step, without the numbers of passes and items: `each[].charge`. */
            path: string;
        };
        /** @description The steps of a version and what leads to what, whatever the dialect. Steps are named by their place in `nodes`. */
        GraphView: {
            edges: components["schemas"]["GraphEdge"][];
            name: string;
            nodes: components["schemas"]["GraphNode"][];
            /**
             * Format: int32
             * @description Of the workflow.
             */
            version: number;
        };
        /**
         * Format: date-time
         * @description An instant, written as `2026-02-22T10:00:00Z`.
         * @example 2026-02-22T10:00:00Z
         */
        Instant: string;
        /** @description What is given is changed. */
        KeyChangeRequest: {
            /** @default null */
            name: string | null;
            /** @default null */
            paused: boolean | null;
        };
        KeyView: {
            /** @description Never answers gates unless it has `workflow.approve` by name. */
            agent: boolean;
            created_at: components["schemas"]["Instant"];
            created_by: string;
            expires_at?: components["schemas"]["Instant"] | null;
            /** @description What it leaves of its user's grants; all of them if there is no list. */
            grants?: string[] | null;
            id: string;
            last_used_at?: components["schemas"]["Instant"] | null;
            name: string;
            paused: boolean;
            revoked_at?: components["schemas"]["Instant"] | null;
            /** @description How the key begins. */
            start: string;
            user: string;
        };
        LabelRequest: {
            /** @description Instead of those it has. */
            labels: {
                [key: string]: string;
            };
        };
        /**
         * @description A length of time, written as `90s`, `10m` or `1h30m`.
         * @example 10m
         */
        Length: string;
        /** @description What is not said is not limited. */
        LimitsView: {
            /**
             * Format: int32
             * @default null
             */
            concurrent_runs: number | null;
            /**
             * @description Whether cron triggers are allowed; they are unless this says otherwise.
             * @default null
             */
            cron: boolean | null;
            /**
             * Format: int64
             * @default null
             */
            executions_per_month: number | null;
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
             * @description Whose answer it will be; yours, if nobody is named.
             * @default null
             */
            user: string | null;
        };
        /** @description A link that signs a browser in, once. */
        LinkView: {
            url: string;
        };
        /** @description A line that code wrote. */
        LogLine: {
            /** @description debug, info, warn or error. */
            level: string;
            text: string;
        };
        /** @description An MCP server whose tools steps can call, as this node sees it. */
        McpServerView: {
            /** @description What it calls itself. */
            about?: string | null;
            /**
             * Format: int32
             * @description How often this node connected to it.
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
            description?: string | null;
            /** @description Over name, description, schemas and annotations as they are offered now. */
            digest?: string | null;
            input_schema?: unknown;
            /** @description As steps, grants and policies name it; none if the server does not offer it now. */
            name?: string | null;
            /** @description `accepted`; `changed` and `new` are held until an administrator accepts them; `missing` is not offered now. */
            standing: string;
            title?: string | null;
            /** @description As its server knows it. */
            tool: string;
        };
        /** @description Who you are here. */
        Me: {
            agent: boolean;
            /** @description What you may do with what you showed. */
            grants: string[];
            /** @description The id of the key you came with; none in a browser. */
            key?: string | null;
            organisation: components["schemas"]["OrganisationView"];
            user: string;
        };
        /** @enum {string} */
        MediumView: "pushover" | "webhook" | "slack" | "ntfy" | "email";
        /** @description What somebody is told. */
        MessageView: {
            /** @description Who may answer by name; without any, whoever has the right. */
            answerers?: string[];
            at: components["schemas"]["Instant"];
            event: string;
            run_id: string;
            step?: string | null;
            /** @description What the gate asks, how it was answered, or why the run failed. */
            text: string;
            title: string;
            until?: components["schemas"]["Instant"] | null;
            workflow: string;
        };
        /** @description Which settings are needed depends on the medium. */
        NewChannelRequest: {
            /** @description Everything if it is not said. */
            events?: components["schemas"]["TopicView"][] | null;
            medium: components["schemas"]["MediumView"];
            name: string;
            /** @description For the organisation, not for yourself. */
            organisation?: boolean;
            /** @description An email address. */
            to?: string | null;
            /** @description Pushover's application token; ntfy's access token. */
            token?: string | null;
            /** @description Of ntfy. */
            topic?: string | null;
            /** @description Of a webhook or Slack; of another server of Pushover's or ntfy's kind. */
            url?: string | null;
            /** @description Pushover's user or group key. */
            user_key?: string | null;
        };
        /** @description A new channel. */
        NewChannelView: components["schemas"]["ChannelView"] & {
            /** @description `whsec_…`: what calls of a webhook are signed with. Shown here and never again. */
            secret?: string | null;
        };
        NewKeyRequest: {
            /** @default false */
            agent: boolean;
            /** @default null */
            expires_at: components["schemas"]["Instant"] | null;
            /**
             * @description What the key leaves of its user's grants; all of them without a list.
             * @default null
             */
            grants: string[] | null;
            /** @default  */
            name: string;
            /**
             * @description You, if nobody is named.
             * @default null
             */
            user: string | null;
        };
        /** @description A new key. The key itself is shown here and never again. */
        NewKeyView: components["schemas"]["KeyView"] & {
            /** @description `sw_…`. */
            key: string;
        };
        NewOrganisationRequest: {
            name: string;
            plan?: string | null;
        };
        /** @description A new organisation with the key of its first user, `admin`, which is never shown again. */
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
            /** @description What people call it. */
            name: string;
            /**
             * Format: int64
             * @description For how long nothing was heard of it.
             */
            quiet_ms: number;
            /**
             * Format: int64
             * @description Attempts that it has now.
             */
            running: number;
            /**
             * Format: int32
             * @description Attempts that it runs at a time, at the most.
             */
            slots: number;
            /** @description Of the program. */
            version: string;
        };
        /** @description A message to one channel, and what became of it. */
        NotificationView: components["schemas"]["MessageView"] & {
            /** Format: int32 */
            attempts: number;
            /** @description The channel's id. */
            channel: string;
            channel_name: string;
            /** @description Why it has not arrived. */
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
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_ApprovalView: {
            data: {
                /**
                 * Format: int32
                 * @description How many have to approve.
                 */
                approvals?: number;
                /** @description Who approved so far, where several have to. */
                approved_by?: string[];
                /** @description What they are asked, resolved: message, approvers, form, and the calls that an approval is for. */
                asks: unknown;
                /** Format: int32 */
                attempt: number;
                created_by: string;
                /** @description Of all that is shown: an answer names it. */
                digest?: string | null;
                /** @description They are asked. */
                escalated?: boolean;
                escalates_at?: components["schemas"]["Instant"] | null;
                /** @description For `POST /api/v1/steps/{id}/ready`. */
                id: string;
                /** @description approval, or verdict on a call that may have happened. */
                kind: string;
                /** @description Whether you may answer it. */
                mine: boolean;
                run_id: string;
                since: components["schemas"]["Instant"];
                step: string;
                until?: components["schemas"]["Instant"] | null;
                /** Format: int32 */
                version?: number;
                workflow: string;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_AuditView: {
            data: {
                /** @description Such as `run.cancel`. */
                action: string;
                at: components["schemas"]["Instant"];
                by: string;
                detail: unknown;
                /** @description Covers this row and the one before. */
                hash: string;
                /** Format: int64 */
                id: number;
                /** @description What it was done to. */
                target: string;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_ChannelView: {
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                events: components["schemas"]["TopicView"][];
                id: string;
                medium: components["schemas"]["MediumView"];
                name: string;
                /** @description The organisation's, not somebody's own. */
                organisation: boolean;
                /** @description Enough to tell it from others. */
                target: string;
                /** @description Whose it is. */
                user?: string | null;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_ConnectionView: {
            data: {
                changed_at: components["schemas"]["Instant"];
                changed_by: string;
                created_at: components["schemas"]["Instant"];
                /** @description Its name, or for SQLite its path. */
                database: string;
                host?: string | null;
                id: string;
                name: string;
                /**
                 * Format: int32
                 * @description The most rows that a query may give, if it is less than what the server allows.
                 */
                rows?: number | null;
                /** @description `postgres` or `sqlite`. */
                scheme: string;
                sealed_with: string;
                /**
                 * Format: int64
                 * @description Milliseconds that a statement may take, if it is less than what the server allows.
                 */
                timeout_ms?: number | null;
                /** @description Whether statements may write. */
                write: boolean;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_Event: {
            data: {
                at: components["schemas"]["Instant"];
                run_id: string;
                step?: string | null;
                /** @description created, started, entered, retrying, again, finished, skipped, ended, … */
                type: string;
                /**
                 * Format: int64
                 * @description The commit it came with.
                 */
                version: number;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_KeyView: {
            data: {
                /** @description Never answers gates unless it has `workflow.approve` by name. */
                agent: boolean;
                created_at: components["schemas"]["Instant"];
                created_by: string;
                expires_at?: components["schemas"]["Instant"] | null;
                /** @description What it leaves of its user's grants; all of them if there is no list. */
                grants?: string[] | null;
                id: string;
                last_used_at?: components["schemas"]["Instant"] | null;
                name: string;
                paused: boolean;
                revoked_at?: components["schemas"]["Instant"] | null;
                /** @description How the key begins. */
                start: string;
                user: string;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_McpServerView: {
            data: {
                /** @description What it calls itself. */
                about?: string | null;
                /**
                 * Format: int32
                 * @description How often this node connected to it.
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
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_NodeView: {
            data: {
                /** @description `node_…`, new for every process. */
                id: string;
                joined_at: components["schemas"]["Instant"];
                /** @description What people call it. */
                name: string;
                /**
                 * Format: int64
                 * @description For how long nothing was heard of it.
                 */
                quiet_ms: number;
                /**
                 * Format: int64
                 * @description Attempts that it has now.
                 */
                running: number;
                /**
                 * Format: int32
                 * @description Attempts that it runs at a time, at the most.
                 */
                slots: number;
                /** @description Of the program. */
                version: string;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_NotificationView: {
            data: (components["schemas"]["MessageView"] & {
                /** Format: int32 */
                attempts: number;
                /** @description The channel's id. */
                channel: string;
                channel_name: string;
                /** @description Why it has not arrived. */
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
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
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
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
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
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_QueryView: {
            data: {
                changed_at: components["schemas"]["Instant"];
                changed_by: string;
                connection: string;
                created_at: components["schemas"]["Instant"];
                id: string;
                name: string;
                /** @description Values of named parameters, for steps that give none. */
                params: {
                    [key: string]: unknown;
                };
                /**
                 * Format: int32
                 * @description The most rows that it gives, unless the step says otherwise.
                 */
                rows?: number | null;
                sql: string;
                /** @description Whether it writes. */
                write: boolean;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_RoleView: {
            data: {
                /** @description Comes with the product and cannot be changed. */
                built_in: boolean;
                grants: string[];
                name: string;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
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
                workflow_id: string;
                /** Format: int32 */
                workflow_version: number;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_ScheduleSummary: {
            data: {
                /** @description None for a single time. */
                cron?: string | null;
                id: string;
                last?: components["schemas"]["Instant"] | null;
                /** @description Why the last tick started nothing. */
                last_error?: string | null;
                last_run_id?: string | null;
                /** @description The next ten, as far as there are. */
                next: components["schemas"]["Instant"][];
                timezone?: string | null;
                workflow: string;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_SecretView: {
            data: {
                changed_at: components["schemas"]["Instant"];
                changed_by: string;
                created_at: components["schemas"]["Instant"];
                /** @description Where it may be sent; anywhere if there is none. */
                hosts: string[];
                id: string;
                /** @description Whether it is taken out of what services send back; shorter ones than 8 characters are not. */
                masked: boolean;
                name: string;
                /** @description The master key that it is sealed with. */
                sealed_with: string;
                /**
                 * Format: int32
                 * @description Counts the values it has had.
                 */
                version: number;
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_String: {
            data: string[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_UserView: {
            data: {
                created_at: components["schemas"]["Instant"];
                created_by: string;
                disabled: boolean;
                /** @description Beside those of the roles. */
                grants: string[];
                id: string;
                name: string;
                roles: string[];
            }[];
            next?: string | null;
        };
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
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
        /** @description One page. `next` is given back as `cursor` to get the one after it; the last page has none. */
        Page_WorkflowSummary: {
            data: {
                created_by: string;
                description?: string | null;
                enabled: boolean;
                id: string;
                inserted_at: components["schemas"]["Instant"];
                labels: {
                    [key: string]: string;
                };
                name: string;
                /** @description New runs wait until it is resumed. */
                paused: boolean;
                /** Format: int32 */
                task_count: number;
                /** @description The first of `triggers`. */
                trigger: string;
                /** @description api, webhook, cron or at. */
                triggers: string[];
                /** Format: int32 */
                version: number;
            }[];
            next?: string | null;
        };
        ParentStep: {
            run_id: string;
            step: string;
        };
        /** @description What is to be held, or let go. */
        PauseRequest: {
            /** @description Only runs with this concurrency key; all of them without it. */
            key?: unknown;
        };
        PausedKey: {
            by: string;
            key: unknown;
            since: components["schemas"]["Instant"];
        };
        /** @description Another plan, or limits instead of a plan's. */
        PlanRequest: {
            /** @default null */
            limits: components["schemas"]["LimitsView"] | null;
            /** @default null */
            plan: string | null;
        };
        /** @description What an organisation says about calls, whatever its workflows say. */
        PolicyRequest: {
            /** @description Whether whoever started the run may approve. */
            allow_self?: boolean;
            /**
             * Format: int32
             * @description How many of them.
             */
            approvals?: number;
            /** @description Users or roles whose approval counts; anyone who may approve if there are none. */
            approvers?: string[];
            /** @description A tool's call that may have happened is not made again, unless the tool says that it can be. */
            at_most_once?: components["schemas"]["UnknownName"];
            /** @description Which calls: `tool:PATTERN`, `host:PATTERN` or `connection:PATTERN`. */
            calls: string;
            effect: components["schemas"]["EffectName"];
            rate?: components["schemas"]["RateView"];
            /** @description For those who are stopped by it. */
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
        /** @description What you are told of, and where. What is given is changed. */
        PreferencesView: {
            /**
             * @description In a browser that is connected.
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
        /** @description What went wrong, for programs (`code`) and for people (`detail`). */
        ProblemView: {
            /** @description Stays the same whatever the words around it. */
            code: string;
            detail: string;
            /** @description Everything that is wrong with what was sent, if it was that. */
            errors?: components["schemas"]["FaultView"][];
            /** @description For whoever looks for this request in the log. */
            request_id?: string | null;
            /** Format: int32 */
            status: number;
            /** @description The state that the request came too late for. */
            status_now?: string | null;
            title: string;
            /** @description Where the code is explained. */
            type: string;
        };
        /** @description What a saved query is set to. */
        QueryRequest: {
            /** @description The name of a connection. */
            connection: string;
            params?: {
                [key: string]: unknown;
            };
            /** Format: int32 */
            rows?: number | null;
            /** @description One statement, with `:name` or `$1` for what steps give. */
            sql: string;
            write?: boolean;
        };
        /** @description A statement that query steps use by its name. */
        QueryView: {
            changed_at: components["schemas"]["Instant"];
            changed_by: string;
            connection: string;
            created_at: components["schemas"]["Instant"];
            id: string;
            name: string;
            /** @description Values of named parameters, for steps that give none. */
            params: {
                [key: string]: unknown;
            };
            /**
             * Format: int32
             * @description The most rows that it gives, unless the step says otherwise.
             */
            rows?: number | null;
            sql: string;
            /** @description Whether it writes. */
            write: boolean;
        };
        /** @description So many calls in so much time. */
        RateView: {
            /** Format: int32 */
            calls: number;
            per: components["schemas"]["Length"];
        };
        /** @description That a call was taken. */
        Received: {
            received: boolean;
        };
        /** @description What a retry on the newest version would keep. */
        RetryPreview: {
            /** @description Steps that would run again. */
            again: string[];
            /** @description Steps whose results stand. */
            stands: string[];
        };
        RetryRequest: {
            /**
             * @description Go on under the newest version of the workflow instead of the run's own.
             * @default false
             */
            newest: boolean;
        };
        RoleRequest: {
            grants: string[];
        };
        RoleView: {
            /** @description Comes with the product and cannot be changed. */
            built_in: boolean;
            grants: string[];
            name: string;
        };
        /** @description What came of sealing everything anew. */
        RotatedView: {
            /** @description The master key that everything is sealed with now. */
            key: string;
            /** @description What no key of this node opens, and why. */
            locked: string[];
            /**
             * Format: int64
             * @description Secrets and connections that were sealed with another one before.
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
             * @description Grows with each retry of the run.
             */
            generation: number;
            id: string;
            input: unknown;
            labels: {
                [key: string]: string;
            };
            output?: unknown;
            /** @description The step of another run that started it, while that run is kept. */
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
             * @description Grows with everything that happens to the run.
             */
            version: number;
            /** @description Why it is not finished; empty if it is. */
            waiting_for: components["schemas"]["Waiting"][];
            workflow: string;
            workflow_id: string;
            /** Format: int32 */
            workflow_version: number;
        };
        /** @description Which runs, newest first. */
        RunFilters: {
            /** @default null */
            created_by: string | null;
            /**
             * @description `next` of the page before.
             * @default null
             */
            cursor: string | null;
            /**
             * @description `name=value`; several with commas must all be there.
             * @default null
             */
            label: string | null;
            /**
             * Format: int32
             * @description How many at the most; 50 if it is not said.
             * @default null
             */
            limit: number | null;
            /**
             * @description Started by steps of this run.
             * @default null
             */
            parent: string | null;
            /**
             * @description Part of the id, the creator's name or a label.
             * @default null
             */
            q: string | null;
            /** @default null */
            since: components["schemas"]["Instant"] | null;
            /**
             * @description One or several with commas.
             * @default null
             */
            status: string | null;
            /**
             * @description Test runs instead of real ones.
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
            workflow_id: string;
            /** Format: int32 */
            workflow_version: number;
        };
        /** @description A run, with its id under the name that triggers answer with, too. */
        RunWithId: components["schemas"]["Run"] & {
            run_id: string;
        };
        /** @description A schedule and when it fires next. */
        ScheduleSummary: {
            /** @description None for a single time. */
            cron?: string | null;
            id: string;
            last?: components["schemas"]["Instant"] | null;
            /** @description Why the last tick started nothing. */
            last_error?: string | null;
            last_run_id?: string | null;
            /** @description The next ten, as far as there are. */
            next: components["schemas"]["Instant"][];
            timezone?: string | null;
            workflow: string;
        };
        /** @description What a secret is set to. A field that is not given stays as it is. */
        SecretRequest: {
            /**
             * @description Hosts that it may be sent to, such as `api.example.com` or `*.example.org`; an empty list is anywhere.
             * @default null
             */
            hosts: string[] | null;
            /**
             * @description Needed for a new one.
             * @default null
             */
            value: string | null;
        };
        /** @description A secret. Its value is never shown. */
        SecretView: {
            changed_at: components["schemas"]["Instant"];
            changed_by: string;
            created_at: components["schemas"]["Instant"];
            /** @description Where it may be sent; anywhere if there is none. */
            hosts: string[];
            id: string;
            /** @description Whether it is taken out of what services send back; shorter ones than 8 characters are not. */
            masked: boolean;
            name: string;
            /** @description The master key that it is sealed with. */
            sealed_with: string;
            /**
             * Format: int32
             * @description Counts the values it has had.
             */
            version: number;
        };
        Step: {
            /** Format: int32 */
            attempt: number;
            /** @description All of them, earlier ones first; only if there were several. */
            attempts?: components["schemas"]["Attempt"][];
            /** Format: int64 */
            duration_ms?: number | null;
            error?: components["schemas"]["ErrorView"] | null;
            finished_at?: components["schemas"]["Instant"] | null;
            /** @description For `POST /api/v1/steps/{id}/ready`. */
            id: string;
            input?: unknown;
            /** @description The output was longer than 256 KB and is kept cut off. */
            is_truncated?: boolean;
            kind: string;
            /** @description What the step's code wrote with `console`. */
            log?: components["schemas"]["LogLine"][];
            output?: unknown;
            started_at?: components["schemas"]["Instant"] | null;
            status: string;
            /** Format: int32 */
            status_code?: number | null;
        };
        /** @description A step as the definition has it. */
        TaskView: {
            kind: string;
            /** @description Steps that lead to it. */
            needs: string[];
        };
        /** @description A definition that is not saved, and what to run it with. */
        TestRequest: {
            /** @description The definition: an object, or its text in JSON or YAML. */
            definition: unknown;
            input?: unknown;
        };
        /** @description Whether a message arrived. */
        TestView: {
            arrived: boolean;
            error?: string | null;
        };
        /**
         * @description What people can be told of.
         * @enum {string}
         */
        TopicView: "gate_opened" | "gate_escalated" | "gate_answered" | "gate_expired" | "run_failed";
        /** @description A run that was just started. */
        Triggered: {
            run_id: string;
            started_at: components["schemas"]["Instant"];
            status: string;
            workflow: string;
            workflow_id: string;
            /** Format: int32 */
            workflow_version: number;
        };
        /**
         * @description What happens when nobody knows whether a call was made.
         * @enum {string}
         */
        UnknownName: "fail" | "ask";
        UsageView: {
            /**
             * Format: int64
             * @description Steps executed in this month.
             */
            executions: number;
            /** @description Such as `2026-11`. */
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
        /** @description What is given is changed. */
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
            /** @description Beside those of the roles. */
            grants: string[];
            id: string;
            name: string;
            roles: string[];
        };
        /** @enum {string} */
        VerdictName: "happened" | "run_again" | "fail";
        /** @description What a person says of a call that may have happened and may not be made twice. */
        VerdictRequest: {
            /** @description What the call gave back, if it happened. */
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
            /** @description queue, executor, retry, sleep, webhook, approval, verdict or child. */
            for: string;
            /** @description Who or what can move it on. */
            moved_on_by: string;
            since?: components["schemas"]["Instant"] | null;
            /** @description Path of the step; empty for the run itself. */
            step: string;
            until?: components["schemas"]["Instant"] | null;
        };
        /** @description A workflow with its definition. */
        Workflow: components["schemas"]["WorkflowSummary"] & {
            /** @description The same, read. */
            definition: unknown;
            /** @description tasks, flow or graph. */
            dialect: string;
            input_schema?: unknown;
            /** @description Concurrency keys whose new runs wait. */
            paused_keys?: components["schemas"]["PausedKey"][];
            /** @description As its author wrote it, JSON or YAML. */
            source: string;
            /** @description By name, whatever the dialect. */
            steps: {
                [key: string]: components["schemas"]["TaskView"];
            };
            /** @description Its tasks as written, if it is written in that dialect. */
            tasks?: unknown;
            /** @description Addresses that start it, for those who may change it. */
            webhooks?: string[];
        };
        /** @description A workflow as lists show it. */
        WorkflowSummary: {
            created_by: string;
            description?: string | null;
            enabled: boolean;
            id: string;
            inserted_at: components["schemas"]["Instant"];
            labels: {
                [key: string]: string;
            };
            name: string;
            /** @description New runs wait until it is resumed. */
            paused: boolean;
            /** Format: int32 */
            task_count: number;
            /** @description The first of `triggers`. */
            trigger: string;
            /** @description api, webhook, cron or at. */
            triggers: string[];
            /** Format: int32 */
            version: number;
        };
        /** @description What can be switched without a new version. */
        WorkflowSwitch: {
            enabled: boolean;
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
                /** @description How many at the most; 50 if it is not said. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of what is open */
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
                /** @description Such as `run.cancel`. */
                action?: string;
                /** @description What it was done to. */
                target?: string;
                limit?: number;
                /** @description `next` of the page before. */
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
            /** @description All of them, without what opens them */
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
            /** @description Made */
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
            /** @description Whether it arrived */
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
            /** @description It can be used */
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
            /** @description All of them */
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
                /** @description Its name */
                connection: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is known of it */
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
                /** @description Its name */
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
            /** @description As given, without the URL */
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
                /** @description Its name */
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
                /** @description Only runs of this workflow, by name or id. */
                workflow?: string;
                /** @description Test runs too. */
                tests?: boolean;
                /** @description Only what came after this place in the log; `Last-Event-ID` counts more. */
                after?: string;
            };
            header?: {
                /** @description Id of the last event that you have */
                "Last-Event-ID"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, as they happen */
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
            /** @description All of them */
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
            /** @description Made */
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
                /** @description Its id */
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
                /** @description Its id */
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
            /** @description What was sealed */
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
            /** @description All of them */
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
            /** @description The server, with how its tools stand now */
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
            /** @description You */
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
            /** @description All of them */
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
                /** @description How many at the most; 50 if it is not said. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of them */
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
            /** @description All of them */
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
            /** @description Made */
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
                /** @description Its number */
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
            /** @description All of them */
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
                /** @description Its name */
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
                /** @description Its name */
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
            /** @description As given */
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
                /** @description Its name */
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
            /** @description In browsers, and for each of your channels */
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
            /** @description Chosen */
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
            /** @description All of them */
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
                /** @description Its name */
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
                /** @description Its name */
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
            /** @description As given */
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
                /** @description Its name */
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
            /** @description All of them */
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
                /** @description Its name */
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
            /** @description As given */
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
                /** @description Its name */
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
                /** @description One or several with commas. */
                status?: string;
                /** @description By name or id. */
                workflow?: string;
                /** @description Created at this instant or later. */
                since?: components["schemas"]["Instant"];
                /** @description Created before this instant. */
                until?: components["schemas"]["Instant"];
                created_by?: string;
                /** @description `name=value`; several with commas must all be there. */
                label?: string;
                /** @description Part of the id, the creator's name or a label. */
                q?: string;
                /** @description Test runs instead of real ones. */
                tests?: boolean;
                /** @description Started by steps of this run. */
                parent?: string;
                /** @description How many at the most; 50 if it is not said. */
                limit?: number;
                /** @description `next` of the page before. */
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
            /** @description What came of it */
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
            /** @description What came of it */
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
                /** @description Its id */
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
            /** @description It is as `If-None-Match` says */
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
                /** @description Its id */
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
                /** @description Its id */
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
                /** @description Its id */
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
                /** @description Only what came after this version of the run. */
                after?: number;
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Its id */
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
            /** @description Its steps and what leads to what */
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
    post_runs_run_rerun: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                run: string;
            };
            cookie?: never;
        };
        /** @description Another input */
        requestBody?: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Started */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Triggered"];
                };
            };
        };
    };
    get_runs_run_retry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What would stand */
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
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
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
            /** @description It goes on */
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
            /** @description What is asked */
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
        /** @description What the call brings */
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
            /** @description Noted */
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
                /** @description Only what came after this version of the run; `Last-Event-ID` counts more. */
                after?: string;
            };
            header?: {
                /** @description Id of the last event that you have */
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
            /** @description Events, as they happen */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description The run has ended, and you have all of it */
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
            /** @description All of them */
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
            /** @description All of them */
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
                /** @description Its name */
                secret: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is known of it */
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
                /** @description Its name */
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
            /** @description As given, without the value */
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
                /** @description Its name */
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
            query?: never;
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
            /** @description It goes on */
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
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TestRequest"];
            };
        };
        responses: {
            /** @description Started */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Triggered"];
                };
            };
        };
    };
    delete_test_runs_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its id */
                run: string;
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
    get_usage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This month's */
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
            /** @description All of them */
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
            /** @description Made */
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
                /** @description `name=value`; several with commas must all be there. */
                label?: string;
                /** @description Part of the name. */
                q?: string;
                limit?: number;
                /** @description `next` of the page before. */
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
            /** @description It is there just so */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowSummary"];
                };
            };
            /** @description Made */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowSummary"];
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
            /** @description It is as `If-None-Match` says */
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
                /** @description The `ETag` of an earlier answer */
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
            /** @description The newest version is as given */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowSummary"];
                };
            };
            /** @description Made: there was none of that name */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_WorkflowSummary"];
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
            /** @description Switched */
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
    get_workflows_id_graph: {
        parameters: {
            query?: {
                /** @description The newest one without it. */
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
            /** @description Its steps and what leads to what */
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
            /** @description Let go */
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
            /** @description The new addresses */
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
                /** @description One or several with commas. */
                status?: string;
                /** @description By name or id. */
                workflow?: string;
                /** @description Created at this instant or later. */
                since?: components["schemas"]["Instant"];
                /** @description Created before this instant. */
                until?: components["schemas"]["Instant"];
                created_by?: string;
                /** @description `name=value`; several with commas must all be there. */
                label?: string;
                /** @description Part of the id, the creator's name or a label. */
                q?: string;
                /** @description Test runs instead of real ones. */
                tests?: boolean;
                /** @description Started by steps of this run. */
                parent?: string;
                /** @description How many at the most; 50 if it is not said. */
                limit?: number;
                /** @description `next` of the page before. */
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
                /** @description Its id */
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
            /** @description It is as `If-None-Match` says */
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
                /** @description Its id */
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
                /** @description How long to wait for the run's end, such as `30s`; at most 5 minutes. `Prefer: wait=30` does the same. */
                wait?: string;
                /** @description Labels of the run, `name=value`, several with commas. */
                label?: string;
            };
            header?: {
                /** @description The same key with the same body starts one run only */
                "Idempotency-Key"?: string | null;
                /** @description `wait=30` waits for the end */
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
            /** @description Started before by this key, or waited for and finished */
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
            /** @description Started, and not finished in the time given */
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
            /** @description All of them */
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
                /** @description Its number */
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
            /** @description The connection is a WebSocket now */
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
                /** @description What the link ends with */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is asked */
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
                /** @description What the link ends with */
                token: string;
            };
            cookie?: never;
        };
        /** @description decision (approve or deny), digest, comment, and what the form asks for */
        requestBody: {
            content: {
                "application/x-www-form-urlencoded": string;
            };
        };
        responses: {
            /** @description Taken */
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
                /** @description What the address ends with */
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
            /** @description The same event started a run before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Data_Triggered"];
                };
            };
            /** @description Taken: the run is on disk */
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
                /** @description What the link ends with */
                link: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Signed in: goes to the first page */
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
                /** @description What the address ends with */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the address is for */
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
                /** @description What the address ends with */
                token: string;
            };
            cookie?: never;
        };
        /** @description What the step's result will be */
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
